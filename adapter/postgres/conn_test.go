package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

func TestBeginAppliesItsOptions(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			show := func(q postgres.DBTX) (v [5]string) {
				require.NoError(t, q.QueryRow(t.Context(), `select current_setting('transaction_isolation'), current_setting('transaction_read_only'),
				current_setting('statement_timeout'), current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')`).
					Scan(&v[0], &v[1], &v[2], &v[3], &v[4]))
				return v
			}
			c := begin(t, db, tx.BeginOptions{})
			require.Equal(t, [5]string{"read committed", "off", "10s", "3s", "10s"}, show(c))
			require.NoError(t, c.Commit(t.Context()))

			c = begin(t, db, tx.BeginOptions{ReadOnly: true, Options: tx.Options{
				Isolation: tx.Serializable, StatementTimeout: 1500 * time.Millisecond, LockTimeout: 700 * time.Millisecond, IdleTimeout: 9 * time.Second,
			}})
			require.Equal(t, [5]string{"serializable", "on", "1500ms", "700ms", "9s"}, show(c))
			require.NoError(t, c.Commit(t.Context()))

			require.Equal(t, [5]string{"read committed", "off", "10s", "3s", "10s"}, show(db), "the session is as it was")
		})
	}
}

func TestReadCommittedWhateverTheServersDefault(t *testing.T) {
	db := shop(t, postgres.Config{MaxConns: 1})
	exec(t, db, "select set_config('default_transaction_isolation', 'serializable', false)")
	c := begin(t, db, tx.BeginOptions{})
	require.Equal(t, "read committed", get[string](t, c, "show transaction_isolation"))
	require.NoError(t, c.Rollback(t.Context()))
}

func TestCommitAndRollback(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			c := begin(t, db, tx.BeginOptions{})
			exec(t, c, "insert into shop.parents (id) values ($1)", 10)
			require.NoError(t, c.Commit(t.Context()))
			c = begin(t, db, tx.BeginOptions{})
			exec(t, c, "insert into shop.parents (id) values ($1)", 11)
			require.NoError(t, c.Rollback(t.Context()))
			require.EqualValues(t, 10, get[int64](t, db, "select max(id) from shop.parents"))
			require.Zero(t, db.Stat().AcquiredConns())
		})
	}
}

func TestNothingAfterTheEnd(t *testing.T) {
	db := shop(t, postgres.Config{})
	for _, end := range []func(c transaction) error{
		func(c transaction) error { return c.Commit(t.Context()) },
		func(c transaction) error { return c.Rollback(t.Context()) },
	} {
		c := begin(t, db, tx.BeginOptions{})
		require.NoError(t, end(c))

		_, err := c.Exec(t.Context(), "insert into shop.parents (id) values (50)")
		require.ErrorIs(t, err, tx.ErrDone)
		rows, err := c.Query(t.Context(), "select 1")
		require.ErrorIs(t, err, tx.ErrDone)
		require.False(t, rows.Next())
		require.ErrorIs(t, rows.Err(), tx.ErrDone)
		require.ErrorIs(t, c.QueryRow(t.Context(), "select 1").Scan(new(int)), tx.ErrDone)
		require.ErrorIs(t, c.Savepoint(t.Context(), "s", false), tx.ErrDone)
		require.ErrorIs(t, c.Release(t.Context(), "s"), tx.ErrDone)
		require.ErrorIs(t, c.RollbackTo(t.Context(), "s"), tx.ErrDone)
		require.ErrorIs(t, c.Commit(t.Context()), tx.ErrDone)
		require.ErrorIs(t, c.Rollback(t.Context()), tx.ErrDone)
	}
	require.Zero(t, get[int64](t, db, "select count(*) from shop.parents where id = 50"))
}

// The pool trusts a connection that was used within the last second, so it is BEGIN that finds it gone.
func TestBeginOnALostConnection(t *testing.T) {
	admin := shop(t, postgres.Config{})
	db := open(t, sameDatabase(admin, postgres.Config{MaxConns: 1}))
	pid := backend(t, db)
	exec(t, admin, "select pg_terminate_backend($1)", pid)
	waitGone(t, admin, pid)
	if c, err := db.Begin(t.Context(), tx.BeginOptions{}); err != nil {
		require.ErrorIs(t, err, fault.DBUnavailable)
	} else { // a slow machine: the pool looked first, and connected anew
		require.NoError(t, c.Rollback(t.Context()))
	}
	c := begin(t, db, tx.BeginOptions{}) // the only place in the pool is free again
	require.NoError(t, c.Rollback(t.Context()))
}

func TestSavepoints(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			const insert = "insert into shop.parents (id) values ($1)"
			name := `s"; drop schema shop cascade; --`
			c := begin(t, db, tx.BeginOptions{})
			require.NoError(t, c.Savepoint(t.Context(), name, false))
			exec(t, c, insert, 10)
			_, err := c.Exec(t.Context(), insert, 10)
			require.ErrorIs(t, err, fault.DBUniqueViolation)
			require.NoError(t, c.RollbackTo(t.Context(), name))
			require.Equal(t, "3B001", sqlstate(c.Release(t.Context(), name)), "it has ended: there is no such savepoint")
			require.NoError(t, c.Rollback(t.Context()))

			c = begin(t, db, tx.BeginOptions{})
			require.NoError(t, c.Savepoint(t.Context(), "s1", false))
			exec(t, c, insert, 11)
			require.NoError(t, c.Release(t.Context(), "s1"))
			require.NoError(t, c.Savepoint(t.Context(), "s1", false))
			exec(t, c, insert, 12)
			require.NoError(t, c.RollbackTo(t.Context(), "s1"))
			require.NoError(t, c.Commit(t.Context()))
			require.EqualValues(t, 11, get[int64](t, db, "select max(id) from shop.parents"))
		})
	}
}

// PostgreSQL gives the flag its old value back at RELEASE, and at ROLLBACK TO: nothing else has to.
func TestReadOnlySavepoint(t *testing.T) {
	const insert = "insert into shop.parents (id) values ($1)"
	ends := map[string]func(c transaction) error{
		"release":  func(c transaction) error { return c.Release(t.Context(), "ro") },
		"rollback": func(c transaction) error { return c.RollbackTo(t.Context(), "ro") },
	}
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			for name, end := range ends {
				c := begin(t, db, tx.BeginOptions{})
				exec(t, c, insert, 20)
				require.NoError(t, c.Savepoint(t.Context(), "ro", true))
				require.Equal(t, "on", get[string](t, c, "show transaction_read_only"), name)
				require.EqualValues(t, 20, get[int64](t, c, "select max(id) from shop.parents"), "reads see the outer writes")

				require.NoError(t, c.Savepoint(t.Context(), "inner", false))
				_, err := c.Exec(t.Context(), insert, 21)
				require.Equal(t, "25006", sqlstate(err))
				require.ErrorIs(t, err, tx.ErrReadOnly, "inside, however deep")
				require.NotErrorIs(t, err, fault.DBReadOnly)
				require.NoError(t, c.RollbackTo(t.Context(), "inner"))

				require.NoError(t, end(c), name)
				require.Equal(t, "off", get[string](t, c, "show transaction_read_only"), name)
				exec(t, c, insert, 22)
				require.NoError(t, c.Rollback(t.Context()))
			}
		})
	}
}

// PostgreSQL refuses it in a savepoint, although nothing was read yet.
func TestSQLCannotLeaveAReadOnlyScope(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			runner, err := tx.NewRunner(db, nil)
			require.NoError(t, err)
			for _, leave := range []string{
				"set transaction read write", "set local transaction_read_only = off", "select set_config('transaction_read_only', 'off', true)",
			} {
				err := runner.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
					return runner.InReadOnly(ctx, func(_ context.Context, r *tx.Tx) error {
						q, err := postgres.Querier(r)
						require.NoError(t, err)
						return run(t, q, leave)
					})
				})
				require.Equal(t, "25001", sqlstate(err), leave)
				err = runner.InReadOnly(t.Context(), func(_ context.Context, r *tx.Tx) error {
					q, err := postgres.Querier(r)
					require.NoError(t, err)
					return run(t, q, leave)
				})
				require.Equal(t, "25001", sqlstate(err), "at the top: "+leave)
			}
		})
	}
}

func TestWriteInReadOnlyTransaction(t *testing.T) {
	db := shop(t, postgres.Config{MaxConns: 1})
	pid := backend(t, db)
	c := begin(t, db, tx.BeginOptions{ReadOnly: true})
	_, err := c.Exec(t.Context(), "insert into shop.parents (id) values ($1)", 10)
	require.Equal(t, "25006", sqlstate(err))
	require.ErrorIs(t, err, tx.ErrReadOnly)
	require.False(t, fault.Retryable(err))
	require.NoError(t, c.Rollback(t.Context()))
	require.Equal(t, pid, backend(t, db), "the connection is kept")
}

// A session that turns read-only by itself stands in for a primary that was demoted under an open connection.
func TestServerTurnedReadOnly(t *testing.T) {
	const insert = "insert into shop.parents (id) values ($1)"
	writes := map[string]func(db *postgres.DB) error{
		"Exec": func(db *postgres.DB) error { _, err := db.Exec(t.Context(), insert, 10); return err },
		"QueryRow": func(db *postgres.DB) error {
			return db.QueryRow(t.Context(), insert+" returning id", 10).Scan(new(int))
		},
		"transaction": func(db *postgres.DB) error {
			return inTx(t, db, tx.Options{}, func(q transaction) error { _, err := q.Exec(t.Context(), insert, 10); return err })
		},
		"savepoint that ended": func(db *postgres.DB) error {
			return inTx(t, db, tx.Options{}, func(q transaction) error {
				require.NoError(t, q.Savepoint(t.Context(), "ro", true))
				require.NoError(t, q.Release(t.Context(), "ro"))
				_, err := q.Exec(t.Context(), insert, 10)
				return err
			})
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			db := shop(t, postgres.Config{MaxConns: 1})
			pid := backend(t, db)
			exec(t, db, "select set_config('default_transaction_read_only', 'on', false)")
			err := write(db)
			require.Equal(t, "25006", sqlstate(err))
			require.ErrorIs(t, err, fault.DBReadOnly)
			require.True(t, fault.Retryable(err))
			require.NotEqual(t, pid, backend(t, db), "the connection is discarded")
			exec(t, db, insert, 10)
		})
	}
}

func TestRollbackOfALostConnection(t *testing.T) {
	db := shop(t, postgres.Config{})
	t.Run("terminated", func(t *testing.T) {
		c := begin(t, db, tx.BeginOptions{})
		pid := backend(t, c)
		exec(t, db, "select pg_terminate_backend($1)", pid)
		waitGone(t, db, pid)
		require.NoError(t, c.Rollback(t.Context()))
	})
	t.Run("context done", func(t *testing.T) { // pgx closes the connection, and the server rolls back
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		c := begin(t, db, tx.BeginOptions{})
		pid := backend(t, c)
		require.Equal(t, context.Canceled, c.Rollback(canceled))
		waitGone(t, db, pid)
	})
	t.Run("rows left open", func(t *testing.T) {
		c := begin(t, db, tx.BeginOptions{})
		pid := backend(t, c)
		rows, err := c.Query(t.Context(), "select generate_series(1, 100000)")
		require.NoError(t, err)
		require.True(t, rows.Next())
		require.Error(t, c.Rollback(t.Context()))
		waitGone(t, db, pid)
	})
	require.Eventually(t, func() bool { return db.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond)
}

func TestQuerier(t *testing.T) {
	db := shop(t, postgres.Config{})
	runner, err := tx.NewRunner(db, nil)
	require.NoError(t, err)

	var kept postgres.DBTX
	require.NoError(t, runner.InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) (err error) {
		kept, err = postgres.Querier(w)
		require.NoError(t, err)
		exec(t, kept, "insert into shop.parents (id) values ($1)", 10)
		return runner.InReadOnly(ctx, func(_ context.Context, r *tx.Tx) error {
			q, err := postgres.Querier(r)
			require.NoError(t, err)
			require.EqualValues(t, 10, get[int64](t, q, "select max(id) from shop.parents"))
			return nil
		})
	}))
	_, err = kept.Exec(t.Context(), "select 1")
	require.ErrorIs(t, err, tx.ErrDone)
	require.EqualValues(t, 10, get[int64](t, db, "select max(id) from shop.parents"))

	err = runner.InReadOnly(t.Context(), func(_ context.Context, r *tx.Tx) error {
		q, err := postgres.Querier(r)
		require.NoError(t, err)
		_, err = q.Exec(t.Context(), "delete from shop.items")
		return err
	})
	require.ErrorIs(t, err, tx.ErrReadOnly)

	_, err = postgres.Querier(nil)
	require.Error(t, err)
}

type otherDriver struct{ tx.Conn }

func (otherDriver) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) {
	return otherDriver{}, nil
}
func (otherDriver) Rollback(context.Context) error { return nil }

func TestTransactionOfAnotherDriverIsRefused(t *testing.T) {
	runner, err := tx.NewRunner(otherDriver{}, nil)
	require.NoError(t, err)
	stop := errors.New("stop")
	require.ErrorIs(t, runner.InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
		_, err := postgres.Querier(w)
		require.ErrorContains(t, err, "another driver")
		return stop
	}), stop)
}

// InNew that waits for a row its own outer transaction has locked: the server sees no cycle, so lock_timeout has to end it.
func TestInNewBehindItsOwnLock(t *testing.T) {
	db := shop(t, postgres.Config{LockTimeout: 20 * time.Millisecond})
	runner, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	update := func(w *tx.Tx) error {
		q, err := postgres.Querier(w)
		require.NoError(t, err)
		_, err = q.Exec(t.Context(), "update shop.items set qty = 5 where id = 1")
		return err
	}
	err = runner.InWrite(t.Context(), func(ctx context.Context, outer *tx.Tx) error {
		require.NoError(t, update(outer))
		return runner.InNew(ctx, func(_ context.Context, inner *tx.Tx) error { return update(inner) })
	})
	require.ErrorIs(t, err, fault.DBLockTimeout)
	require.Equal(t, "55P03", sqlstate(err))
}
