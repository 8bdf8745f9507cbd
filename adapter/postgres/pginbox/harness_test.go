package pginbox_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pginbox"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a database with the messages in it and a table for effects, reached in one exec mode.
type fixture struct {
	dsn      string
	db       *postgres.DB
	runner   *tx.Runner
	messages *pginbox.Messages
}

var execModes = pgtest.ExecModes()

// through is the way from a test to its database: none, or a pooler in the end-to-end tests.
var through = func(_ *testing.T, dsn string) string { return dsn }

func newFixture(t *testing.T, mode string, cfg postgres.Config, o *tx.RunnerOptions) *fixture {
	t.Helper()
	cfg.ExecMode, cfg.DSN = mode, through(t, migrationstest.DSN(t, migrations.Inbox()))
	f := open(t, cfg, o)
	_, err := f.db.Exec(t.Context(), `create table public.effect (id text not null, n int not null default 1)`)
	require.NoError(t, err)
	return f
}

func open(t *testing.T, cfg postgres.Config, o *tx.RunnerOptions) *fixture {
	t.Helper()
	f := &fixture{dsn: cfg.DSN}
	var err error
	f.db, err = postgres.Open(t.Context(), cfg, &postgres.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		require.NoError(t, f.db.Close(ctx))
	})
	f.runner, err = tx.NewRunner(f.db, o)
	require.NoError(t, err)
	f.messages = pginbox.New(f.db)
	return f
}

func (f *fixture) inbox(t *testing.T, o inbox.Options) *inbox.Inbox {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	in, err := inbox.New(f.messages, f.runner, "shipping", &o)
	require.NoError(t, err)
	return in
}

// effect is a handler that writes one row, in two places, and returns err.
func effect(id string, err error) func(context.Context, *tx.Tx) error {
	return func(ctx context.Context, t *tx.Tx) error {
		q, qerr := postgres.Querier(t)
		if qerr != nil {
			return qerr
		}
		if _, qerr = q.Exec(ctx, `insert into public.effect (id) values ($1)`, id); qerr != nil {
			return qerr
		}
		return err
	}
}

// never is a handler that must not run.
func never(t *testing.T) func(context.Context, *tx.Tx) error {
	t.Helper()
	return func(context.Context, *tx.Tx) error {
		t.Error("the handler ran")
		return nil
	}
}

func delivery(n int) inbox.Message { return inbox.Message{ID: "m1", Deliveries: n} }

func get[T any](t *testing.T, f *fixture, sql string, args ...any) (v T) {
	t.Helper()
	require.NoError(t, f.db.QueryRow(t.Context(), sql, args...).Scan(&v))
	return v
}

func (f *fixture) exec(t *testing.T, sql string) {
	t.Helper()
	_, err := f.db.Exec(t.Context(), sql)
	require.NoError(t, err)
}

// effects is how often a message took effect.
func (f *fixture) effects(t *testing.T, id string) int {
	t.Helper()
	return get[int](t, f, `select count(*)::int4 from public.effect where id = $1`, id)
}

// waiting waits until n sessions wait for a lock.
func (f *fixture) waiting(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		return get[int](t, f, `select count(*)::int4 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == n
	}, 30*time.Second, time.Millisecond)
}
