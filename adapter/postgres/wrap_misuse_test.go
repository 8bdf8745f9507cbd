package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// After the end, nothing of the kit's may run, least of all by itself on a connection that goes on.
func TestNothingRunsInAJoinedTransactionThatHasEnded(t *testing.T) {
	t.Parallel()
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			db, begin := w.fresh(t)
			runner, err := tx.NewRunner(db, nil)
			require.NoError(t, err)
			for _, end := range []string{"committed", "rolled back"} {
				c := begin("read committed")
				tr, j, _ := wrap(t, c)
				if end == "committed" {
					require.NoError(t, c.commit())
					require.NoError(t, j.Committed(t.Context()))
				} else {
					require.NoError(t, c.rollback())
					j.RolledBack()
				}
				ctx := j.Context(t.Context(), runner)
				require.ErrorIs(t, j.Committed(ctx), tx.ErrDone, end)
				require.ErrorIs(t, tr.AfterCommit(func(context.Context) error { return nil }), tx.ErrDone, end)
				require.ErrorIs(t, tr.Savepoint(ctx, func(context.Context) error { t.Error("fn ran"); return nil }), tx.ErrDone, end)
				for _, verb := range []func(context.Context, func(context.Context, *tx.Tx) error) error{runner.InWrite, runner.InRootWrite, runner.InReadOnly, runner.InNew} {
					require.ErrorIs(t, verb(ctx, func(context.Context, *tx.Tx) error { t.Error("fn ran"); return nil }), tx.ErrDone, end)
				}
				_, open := tx.FromContext(ctx)
				require.False(t, open, end)
				_, err := postgres.Querier(tr)
				require.ErrorIs(t, err, tx.ErrDone, end)
			}
		})
	}
}

// A caller that tells a COMMIT of which the server has made a ROLLBACK is not believed only where the kit has seen the failure: the
// hooks of one who lies are his own. What it can see, it refuses.
func TestCommittedIsNotBelievedWhileTheTransactionIsOpen(t *testing.T) {
	t.Parallel()
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			db, begin := w.fresh(t)
			c := begin("read committed")
			tr, j, q := wrap(t, c)
			require.NoError(t, tr.AfterCommit(func(context.Context) error { t.Error("a hook ran"); return nil }))
			exec(t, q, "insert into shop.parents (id) values ($1)", 3)
			require.ErrorIs(t, j.Committed(t.Context()), tx.ErrOpen)
			_, err := q.Exec(t.Context(), "insert into shop.parents (id) values ($1)", 3)
			require.ErrorIs(t, err, fault.DBUniqueViolation)
			require.ErrorIs(t, j.Committed(t.Context()), tx.ErrOpen, "an aborted one is open too")
			require.NoError(t, c.rollback())
			j.RolledBack()
			require.Zero(t, parents(t, db))
		})
	}
}

// The transaction is of whatever database its handle leads to: there the events are recorded, and one without the kit's tables says so.
func TestAJoinedTransactionOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	db := shop(t, postgres.Config{DSN: migrationstest.DSN(t, migrations.All()...)})
	ob, err := outbox.New(pgoutbox.New(db), nil)
	require.NoError(t, err)
	for _, name := range []string{"sql.Tx", "pgx"} {
		c := beginners[name](t, shop(t, postgres.Config{}), "read committed")
		tr, j, _ := wrap(t, c)
		err := ob.Append(t.Context(), tr, outbox.Event{Type: "a.b", AggregateType: "a", AggregateID: "1", Payload: []byte("x")})
		require.Equal(t, "42P01", sqlstate(err), name)
		require.NoError(t, c.rollback())
		j.RolledBack()
	}
	require.Zero(t, get[int64](t, db, "select count(*) from caskeleton.outbox_event"))
}

// Nothing is appended in a read-only transaction, and the database is not touched for it.
func TestAppendInAReadOnlyJoinedTransaction(t *testing.T) {
	t.Parallel()
	db := shop(t, postgres.Config{DSN: migrationstest.DSN(t, migrations.All()...)})
	ob, err := outbox.New(pgoutbox.New(db), nil)
	require.NoError(t, err)
	runner, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	for _, name := range []string{"sql.Tx", "pgx"} {
		c := beginners[name](t, db, "read committed, read only")
		tr, j, q := wrap(t, c)
		event := outbox.Event{Type: "a.b", AggregateType: "a", AggregateID: "1", Payload: []byte("x")}
		require.ErrorIs(t, ob.Append(t.Context(), tr, event), tx.ErrReadOnly, name)
		err := runner.InWrite(j.Context(t.Context(), runner), func(context.Context, *tx.Tx) error { t.Error("fn ran"); return nil })
		require.ErrorIs(t, err, tx.ErrReadOnly, name)
		require.EqualValues(t, 1, get[int64](t, q, "select 1::int8"), "the transaction goes on")
		require.NoError(t, c.commit())
		require.NoError(t, j.Committed(t.Context()))
	}
}

// A connection that is lost is a transaction that has not committed; saying so needs no server.
func TestAJoinedTransactionWhoseConnectionIsLost(t *testing.T) {
	t.Parallel()
	db := shop(t, postgres.Config{})
	for _, name := range []string{"sql.Tx", "pgx"} {
		c := beginners[name](t, db, "read committed")
		_, j, q := wrap(t, c)
		pid := backend(t, q)
		exec(t, db, "select pg_terminate_backend($1)", pid)
		waitGone(t, db, pid)
		_, err := q.Exec(t.Context(), "select $1::int8", 1)
		require.Error(t, err)
		require.True(t, errors.Is(err, fault.DBUnavailable) || errors.Is(err, sql.ErrConnDone) || fault.CodeOf(err) == fault.Internal, "%s: %v", name, err)
		require.NotErrorIs(t, err, fault.DBCommitUnknown)
		require.Error(t, c.commit(), name)
		j.RolledBack()
		require.ErrorIs(t, j.Committed(t.Context()), tx.ErrDone)
	}
}

// Two parts of a program may wrap the same transaction: neither takes from the other that it is open.
func TestATransactionThatIsWrappedTwice(t *testing.T) {
	t.Parallel()
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			db, begin := w.fresh(t)
			c := begin("read committed")
			outer, first, _ := wrap(t, c)
			require.NoError(t, outer.Savepoint(t.Context(), func(ctx context.Context) error {
				inner, second, q := wrap(t, c)
				require.NoError(t, inner.Savepoint(ctx, func(ctx context.Context) error {
					_, err := q.Exec(ctx, "insert into shop.parents (id) values ($1)", 3)
					return err
				}))
				require.ErrorIs(t, second.Committed(ctx), tx.ErrOpen)
				second.RolledBack()
				return nil
			}))
			require.ErrorIs(t, first.Committed(t.Context()), tx.ErrOpen)
			require.NoError(t, c.commit())
			require.NoError(t, first.Committed(t.Context()))
			require.EqualValues(t, 1, parents(t, db))
		})
	}
}
