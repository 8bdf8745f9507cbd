package postgres_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

const (
	blockedUpdate = "update shop.parents set id = id where id = 1"
	rowQueued     = "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')"
)

// blocked runs fn while another transaction holds the row that blockedUpdate waits for.
func blocked(t *testing.T, db *postgres.DB, fn func()) {
	t.Helper()
	c := begin(t, db, tx.BeginOptions{})
	exec(t, c, blockedUpdate)
	fn()
	require.NoError(t, c.Rollback(t.Context()))
}

// What meets a statement of another goroutine is refused, and without it the transaction is not what fn wanted, whoever swallows the refusal.
func TestATransactionIsUsedByOneGoroutine(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode, MaxConns: 3, StatementTimeout: time.Minute, LockTimeout: 50 * time.Second})
			r := runner(t, db)
			waited := make(chan error, 1)
			err := r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
				q := handle(t, tr)
				exec(t, q, "insert into shop.parents (id) values ($1)", 3)
				require.NoError(t, tr.AfterCommit(func(context.Context) error { t.Error("a hook ran"); return nil }))
				blocked(t, db, func() {
					go func() {
						_, err := q.Exec(ctx, blockedUpdate)
						waited <- err
					}()
					eventually(t, db, rowQueued)
					_, err := q.Exec(ctx, "insert into shop.parents (id) values ($1)", 4)
					require.ErrorIs(t, err, tx.ErrConcurrentUse)
					_, err = query(t, handle(t, tr), "select id from shop.parents where id > $1", 0)
					require.ErrorIs(t, err, tx.ErrConcurrentUse)
					require.ErrorIs(t, tr.Savepoint(ctx, func(context.Context) error { t.Error("fn ran"); return nil }), tx.ErrConcurrentUse)
					require.ErrorIs(t, postgres.AddWitness(tr, nil), tx.ErrConcurrentUse)
				})
				require.NoError(t, <-waited, "the one who was first goes on")
				return nil
			})
			require.ErrorIs(t, err, fault.TXRollbackOnly)
			require.ErrorIs(t, err, tx.ErrConcurrentUse)
			require.EqualValues(t, 2, get[int64](t, db, "select count(*) from shop.parents"))
			require.Zero(t, db.Stat().AcquiredConns())
		})
	}
}

// fn returns while a goroutine of its is in the middle of a statement, which must not outlive the transaction.
func TestAStatementThatOutlivesFnIsCutOff(t *testing.T) {
	db := shop(t, postgres.Config{MaxConns: 3, StatementTimeout: time.Minute, LockTimeout: 50 * time.Second})
	r, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for _, result := range []error{nil, context.Canceled} {
		left := make(chan error, 2)
		blocked(t, db, func() {
			err := r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
				q := handle(t, tr)
				exec(t, q, "insert into shop.parents (id) values ($1)", 3)
				go func() {
					_, err := q.Exec(ctx, blockedUpdate)
					left <- err
					_, err = q.Exec(ctx, blockedUpdate)
					left <- err
				}()
				eventually(t, db, rowQueued)
				return result
			})
			if result == nil {
				require.ErrorIs(t, err, tx.ErrConcurrentUse)
				require.ErrorIs(t, err, fault.TXRollbackOnly)
			} else {
				require.ErrorIs(t, err, result)
			}
			require.Error(t, <-left)
			require.ErrorIs(t, <-left, tx.ErrDone)
		})
		require.EqualValues(t, 2, get[int64](t, db, "select count(*) from shop.parents"))
	}
}

func TestRowsAreNotReadAfterTheEnd(t *testing.T) {
	db := shop(t, postgres.Config{MaxConns: 1})
	c := begin(t, db, tx.BeginOptions{})
	rows, err := c.Query(t.Context(), "select id from shop.parents")
	require.NoError(t, err)
	require.True(t, rows.Next())
	require.Error(t, c.Rollback(t.Context()), "it is busy with the rows, and given up")
	require.False(t, rows.Next())
	require.ErrorIs(t, rows.Err(), tx.ErrDone)
	require.ErrorIs(t, rows.Scan(new(int64)), tx.ErrDone)
	rows.Close()
	require.EqualValues(t, 2, get[int64](t, db, "select count(*) from shop.parents"), "the next one's connection is its own")
}

// Many goroutines, in all that a transaction is used for, neither race nor corrupt: it commits all of it, or nothing.
func TestManyGoroutinesInATransaction(t *testing.T) {
	db := shop(t, postgres.Config{MaxConns: 2})
	r := runner(t, db)
	for range 20 {
		exec(t, db, "delete from shop.parents where id > 2")
		err := r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			var g errgroup.Group
			for i := range 4 {
				g.Go(func() error {
					q, err := postgres.Querier(tr)
					if err != nil {
						return err
					}
					_, _ = q.Exec(ctx, "insert into shop.parents (id) values ($1)", 10+i)
					rows, err := q.Query(ctx, "select id from shop.parents")
					if err == nil {
						for rows.Next() {
							_ = rows.Scan(new(int64))
						}
						rows.Close()
					}
					_ = tr.Savepoint(ctx, func(ctx context.Context) error {
						_, err := q.Exec(ctx, "insert into shop.parents (id) values ($1)", 20+i)
						return err
					})
					return nil
				})
			}
			return g.Wait()
		})
		want := int64(2)
		if err == nil {
			want = 10
		}
		require.Equal(t, want, get[int64](t, db, "select count(*) from shop.parents"), "%v", err)
	}
}

func TestAJoinedTransactionIsUsedByOneGoroutine(t *testing.T) {
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			db, begin := w.fresh(t)
			c := begin("read committed")
			tr, j, q := wrap(t, c)
			waited := make(chan error, 1)
			blocked(t, db, func() {
				go func() {
					_, err := q.Exec(t.Context(), blockedUpdate)
					waited <- err
				}()
				eventually(t, db, rowQueued)
				_, err := handle(t, tr).Exec(t.Context(), "insert into shop.parents (id) values ($1)", 4)
				require.ErrorIs(t, err, tx.ErrConcurrentUse)
				require.ErrorIs(t, tr.Savepoint(t.Context(), func(context.Context) error { t.Error("fn ran"); return nil }), tx.ErrConcurrentUse)
				require.ErrorIs(t, j.Committed(t.Context()), tx.ErrOpen)
			})
			require.NoError(t, <-waited)
			require.NoError(t, c.rollback())
			j.RolledBack()
		})
	}
}
