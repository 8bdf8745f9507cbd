// Command tour is the program that the README shows a part of.
package main

import (
	"context"
	"embed"
	"net/http"
	"os"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/bootstrap"
	"caskeleton.dev/bootstrap/cli"
	"caskeleton.dev/inbox"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

//go:embed *.sql
var files embed.FS

// Shop is a service with one route and one consumer.
type Shop struct{ outbox *outbox.Outbox }

func (s *Shop) consumers(*bootstrap.App) []bootstrap.Consumer {
	return []bootstrap.Consumer{{Name: "shelf", Effects: map[string]natsbroker.Effect{
		"item.added": func(context.Context, *tx.Tx, inbox.Message) error { return nil },
	}}}
}

func decodeItem(r *httpapi.Request) (any, error) {
	var in struct {
		Name string `json:"name"`
	}
	err := httpapi.Decode(r.Body, &in)
	return in.Name, err
}

// A transaction is an argument: whatever must ride it takes *tx.Tx, so leaving it out does not compile.
func (s *Shop) place(ctx context.Context, t *tx.Tx, r *httpapi.Request) (*httpapi.Response, error) {
	q, err := postgres.Querier(t) // Exec, Query, QueryRow: what sqlc calls DBTX
	if err != nil {
		return nil, err
	}
	var id string
	if err := q.QueryRow(ctx, `insert into shop.item (name) values ($1) returning id::text`, r.Input).Scan(&id); err != nil {
		return nil, err // a unique violation is a 409 whose text names nothing; the log has the constraint, never a value
	}
	err = s.outbox.Append(ctx, t, outbox.Event{Type: "item.added", AggregateType: "item", AggregateID: id, Payload: r.Body})
	if err != nil {
		return nil, err
	}
	return httpapi.JSON(http.StatusCreated, map[string]string{"id": id}) // stored with the effect, sent after COMMIT
}

func (s *Shop) Service() bootstrap.Service {
	return bootstrap.Service{
		Name:    "shop",
		Streams: []migrations.Stream{{Name: "shop", Schema: "shop", FS: files}}, // the kit's tables are applied before
		Events:  &bootstrap.Events{Consumers: s.consumers},                      // each event handled once, through the inbox
		Routes: func(a *bootstrap.App) (http.Handler, error) {
			s.outbox = a.Outbox
			mux := httpapi.NewMux(a.Log)
			mux.Handle("POST /items", httpapi.Transactional(a.Idempotency, httpapi.Policy{Decode: decodeItem, Logger: a.Log}, s.place))
			return mux, nil
		},
	}
}

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := cli.Signals(context.Background())
	defer stop()
	s := (&Shop{}).Service()
	app := cli.App{Name: s.Name, Streams: s.Streams, Commands: cli.ServiceCommands(s)}
	return cli.Main(ctx, app, cli.Process{Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr})
}
