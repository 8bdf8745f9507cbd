package pgoutbox_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/outbox"
	"caskeleton.dev/outbox/outboxtest"
	"caskeleton.dev/tx"
)

func TestConformance(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			outboxtest.TestDriver(t, outboxtest.DriverHarness{New: func(t *testing.T) outboxtest.Store {
				t.Helper()
				f := newFixture(t, mode)
				return outboxtest.Store{Driver: f.driver, Runner: f.runner, Expire: func(ctx context.Context) error {
					_, err := f.db.Exec(ctx, `update caskeleton.outbox_lane set due = clock_timestamp() - interval '1 second' where due is not null`)
					return err
				}}
			}})
		})
	}
}

// TestConformanceAsTheRuntimeRole: the grants of `migrate grants` are enough for all that an append, a claim and a settlement do.
func TestConformanceAsTheRuntimeRole(t *testing.T) {
	t.Parallel()
	outboxtest.TestDriver(t, outboxtest.DriverHarness{New: func(t *testing.T) outboxtest.Store {
		t.Helper()
		owner := newFixture(t, "exec")
		db := open(t, postgres.Config{DSN: migrationstest.RuntimeDSN(t, owner.dsn, migrations.OutboxStorage(), migrations.OutboxPolling()), MaxConns: 20})
		runner, err := tx.NewRunner(db, nil)
		require.NoError(t, err)
		return outboxtest.Store{Driver: pgoutbox.New(db), Runner: runner, Expire: func(ctx context.Context) error {
			_, err := owner.db.Exec(ctx, `update caskeleton.outbox_lane set due = clock_timestamp() - interval '1 second' where due is not null`)
			return err
		}}
	}})
}

// TestTheRuntimeRoleDoesTheRest that the suite does not ask for: append in a snapshot that is older than the statement, and operators' reads.
func TestTheRuntimeRoleDoesTheRest(t *testing.T) {
	t.Parallel()
	owner := newFixture(t, "exec")
	db := open(t, postgres.Config{DSN: migrationstest.RuntimeDSN(t, owner.dsn, migrations.OutboxStorage(), migrations.OutboxPolling())})
	runner, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	driver := pgoutbox.New(db)
	ob, err := outbox.New(driver, nil)
	require.NoError(t, err)
	require.NoError(t, runner.With(tx.Options{Isolation: tx.RepeatableRead}).InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		return ob.Append(ctx, tr, event("a", "1"))
	}))
	left, err := driver.PartitionsLeft(t.Context())
	require.NoError(t, err)
	require.Positive(t, left)
	_, err = driver.Published(t.Context(), lane("a"), 10)
	require.NoError(t, err)
	_, _, ok, err := driver.NextDue(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
}
