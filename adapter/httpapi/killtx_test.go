package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// More places at which the child stops, on the way of a transactional operation.
const (
	started   = "started"
	answered  = "answer stored, not committed"
	committed = "committed, not yet written"
)

func (s stopper) Start(ctx context.Context, t *tx.Tx, c idempotency.Claim, others []idempotency.Scope) error {
	s.reach(claimed)
	err := s.Driver.Start(ctx, t, c, others)
	s.reach(started)
	return err
}

func (s stopper) Complete(ctx context.Context, t *tx.Tx, c idempotency.Claim, a idempotency.Answer) error {
	err := s.Driver.Complete(ctx, t, c, a)
	s.reach(answered)
	return err
}

// order is a handler whose effect is in the database.
func (s stopper) order(ctx context.Context, t *tx.Tx, r *httpapi.Request) (*httpapi.Response, error) {
	q, err := postgres.Querier(t)
	if err != nil {
		return nil, err
	}
	if _, err := q.Exec(ctx, `insert into shop.effect (name) values ($1)`, r.Header.Get("Idempotency-Key")); err != nil {
		return nil, err
	}
	s.reach(effectMade)
	return &httpapi.Response{Status: http.StatusCreated, Body: []byte("ordered")}, nil
}

// answering stops where an answer would be written.
func (s stopper) answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(stoppingWriter{w, s}, r) })
}

type stoppingWriter struct {
	http.ResponseWriter

	stopper stopper
}

func (w stoppingWriter) WriteHeader(status int) {
	w.stopper.reach(committed)
	w.ResponseWriter.WriteHeader(status)
}

func (c *child) order(ctx context.Context, key string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/orders/1", strings.NewReader(`{}`))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return answer{res, string(body)}, err
}

func TestKilledAnywhereATransactionalOperationHasOneEffect(t *testing.T) {
	dsn := migrationstest.DSN(t, migrations.Idempotency())
	f := openFixture(t, postgres.Config{DSN: dsn}, nil)
	_, err := f.db.Exec(t.Context(), `alter table shop.effect drop constraint canary_unique`) // two effects must be possible
	require.NoError(t, err)
	next := startChild(t, "-", dsn, "") // who lives on
	for at, c := range map[string]struct {
		state  string
		replay bool // the first answer after the kill is from the store
	}{
		beforeClaim: {}, claimed: {state: "CLAIMED"}, started: {state: "CLAIMED"}, effectMade: {state: "CLAIMED"}, answered: {state: "CLAIMED"},
		committed: {"COMPLETED", true},
	} {
		t.Run(at, func(t *testing.T) {
			key := strings.NewReplacer(" ", "-", ",", "").Replace(at)
			mine := " where route = 'POST /orders/{id}' and state = '" + c.state + "'"
			effects := func() int { return f.count(t, "shop.effect where name = '"+key+"'") }
			repeat := func() answer {
				res, err := next.order(t.Context(), key)
				require.NoError(t, err)
				return res
			}
			_, err := f.db.Exec(t.Context(), `delete from caskeleton.idempotency_record`)
			require.NoError(t, err)

			dying := startChild(t, at, dsn, "")
			cut := make(chan error)
			go func() {
				_, err := dying.order(t.Context(), key)
				cut <- err
			}()
			dying.kill(t)
			require.Error(t, <-cut, "an answer was written")
			if c.replay {
				require.Equal(t, 1, effects())
			} else {
				require.Zero(t, effects())
			}
			if c.state != "" {
				require.Equal(t, 1, f.count(t, "caskeleton.idempotency_record"+mine))
			}
			if c.state == "CLAIMED" {
				require.Equal(t, "IDEMPOTENCY_IN_PROGRESS", repeat().problem(t).Code, "nobody knows yet that it is dead")
				_, err := f.db.Exec(t.Context(), `update caskeleton.idempotency_record set lease_expires_at = clock_timestamp()`) // once its session is gone
				require.NoError(t, err)
			}
			res := repeat()
			require.Equal(t, http.StatusCreated, res.StatusCode)
			require.Equal(t, "ordered", res.body)
			require.Equal(t, c.replay, res.Header.Get("Idempotent-Replayed") == "true")
			res = repeat()
			require.Equal(t, "true", res.Header.Get("Idempotent-Replayed"))
			require.Equal(t, "ordered", res.body)
			require.Equal(t, 1, effects())
		})
	}
}
