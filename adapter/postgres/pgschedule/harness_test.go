package pgschedule_test

import (
	"cmp"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

var execModes = pgtest.ExecModes()

// through is the way from a test to its database: none, or a pooler in the end-to-end tests.
var through = func(_ *testing.T, dsn string) string { return dsn }

// open opens a pool of its own, as an instance has it.
func open(t *testing.T, dsn, mode string) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Config{DSN: through(t, dsn), ExecMode: cmp.Or(mode, execModes[0]), MaxConns: 4}, &postgres.Options{Logger: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		require.NoError(t, db.Close(ctx))
	})
	return db
}

func newDSN(t *testing.T) string {
	t.Helper()
	return migrationstest.DSN(t, migrations.Lock())
}
