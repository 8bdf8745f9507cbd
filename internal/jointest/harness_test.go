package jointest

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/outbox"
)

// errChanged is why a use case rolls back.
var errChanged = errors.New("the customer has changed their mind")

// shop is a service that lives without the kit's transactions: it has a table of its own, an outbox, and a relay that has time.
type shop struct {
	dsn       string
	db        *postgres.DB
	outbox    *outbox.Outbox
	published chan string
}

// Publish implements outbox.Publisher.
func (s *shop) Publish(ctx context.Context, run []outbox.Event) (int, error) {
	for i, e := range run {
		select {
		case s.published <- e.AggregateID:
		case <-ctx.Done():
			return i, ctx.Err()
		}
	}
	return len(run), nil
}

func open(t *testing.T) *shop {
	t.Helper()
	s := &shop{dsn: migrationstest.DSN(t, migrations.OutboxStorage(), migrations.OutboxPolling()), published: make(chan string)}
	var err error
	s.db, err = postgres.Open(t.Context(), postgres.Config{DSN: s.dsn}, nil)
	require.NoError(t, err)
	_, err = s.db.Exec(t.Context(), `create table public.orders (id text primary key)`)
	require.NoError(t, err)
	driver := pgoutbox.New(s.db)
	s.outbox, err = outbox.New(driver, nil)
	require.NoError(t, err)
	// It polls so rarely that what arrives in time has rung the bell.
	relay, err := outbox.NewRelay(driver, s, &outbox.RelayOptions{Bell: s.outbox.Bell(), PollInterval: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, s.db.Close(context.WithoutCancel(t.Context())))
	})
	return s
}

// pool opens what the service uses itself: one of the drivers of database/sql.
func (s *shop) pool(t *testing.T, driver string) *sql.DB {
	t.Helper()
	pool, err := sql.Open(driver, s.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pool.Close()) })
	return pool
}

// drivers are those that a pool may be opened with.
var drivers = []string{"pgx", "postgres"} // the second is lib/pq's

var _ = stdlib.GetDefaultDriver // registers the first

// placed is what happened to an order.
func placed(id string) outbox.Event {
	return outbox.Event{Type: "order.placed", AggregateType: "order", AggregateID: id, Payload: []byte(`{}`)}
}

// place is a use case: in a transaction that it begins and ends itself, it stores an order and says so. With an error it rolls back.
type place func(ctx context.Context, ob *outbox.Outbox, id string, result error) error

// prove shows that the event is there, and delivered, if and only if the transaction commits.
func (s *shop) prove(t *testing.T, place place) {
	t.Helper()
	count := func(sql string) (n int) {
		require.NoError(t, s.db.QueryRow(t.Context(), sql).Scan(&n))
		return n
	}
	require.ErrorIs(t, place(t.Context(), s.outbox, "undone", errChanged), errChanged)
	require.Zero(t, count(`select count(*) from public.orders`))
	require.Zero(t, count(`select count(*) from caskeleton.outbox_event`))

	require.NoError(t, place(t.Context(), s.outbox, "kept", nil))
	require.Equal(t, 1, count(`select count(*) from public.orders where id = 'kept'`))
	require.Equal(t, 1, count(`select count(*) from caskeleton.outbox_event where aggregateid = 'kept'`))
	select {
	case id := <-s.published:
		require.Equal(t, "kept", id)
	case <-time.After(30 * time.Second):
		require.Fail(t, "the event was not delivered")
	}
}
