package postgres_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/embedded"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
	"caskeleton.dev/tx"
)

func runner(t *testing.T, db *postgres.DB) *tx.Runner {
	t.Helper()
	r, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	return r
}

// holding runs fn beside a transaction that holds keys.
func holding(t *testing.T, db *postgres.DB, fn func(), keys ...string) {
	t.Helper()
	require.NoError(t, runner(t, db).InWrite(t.Context(), func(ctx context.Context, held *tx.Tx) error {
		require.NoError(t, lock.InTx(ctx, held, 0, keys...))
		fn()
		return nil
	}))
}

// free reports whether a transaction of its own gets the key at once.
func free(t *testing.T, db *postgres.DB, key string) bool {
	t.Helper()
	err := runner(t, db).InNew(t.Context(), func(ctx context.Context, other *tx.Tx) error { return lock.InTx(ctx, other, 0, key) })
	if err != nil {
		require.ErrorIs(t, err, fault.LockAcquisitionTimeout)
	}
	return err == nil
}

func queued(t *testing.T, db *postgres.DB) {
	t.Helper()
	eventually(t, db, "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory')")
}

// handle is what tr runs SQL on.
func handle(t *testing.T, tr *tx.Tx) postgres.DBTX {
	t.Helper()
	q, err := postgres.Querier(tr)
	require.NoError(t, err)
	return q
}

const advisoryLocks = "select count(*)::int8 from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"

// Many transactions read a number and write one more, at READ COMMITTED, each for two of a few keys, in whatever order: nothing but the locks keeps
// them from losing each other's steps, or from waiting in a circle.
func TestInTxExcludes(t *testing.T) {
	const workers, rounds = 6, 8
	names := []string{"a", "b", "c"}
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			dsn := pgtest.DSN(t)
			conn := pgtest.Connect(t, dsn)
			_, err := conn.Exec(t.Context(), `create table public.counter (name text primary key, n int8 not null);
				insert into public.counter values ('a', 0), ('b', 0), ('c', 0);
				do $$ begin execute format('alter database %I set default_transaction_isolation = serializable', current_database()); end $$`)
			require.NoError(t, err)
			db := open(t, postgres.Config{DSN: dsn, ExecMode: mode, MaxConns: workers, StatementTimeout: time.Minute})
			r := runner(t, db)
			var g errgroup.Group
			for range workers {
				g.Go(func() error {
					for range rounds {
						order := rand.Perm(len(names))[:2]
						keys := []string{names[order[0]], names[order[1]]}
						err := r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
							if err := lock.InTx(ctx, tr, 50*time.Second, keys...); err != nil {
								return err
							}
							q, err := postgres.Querier(tr)
							if err != nil {
								return err
							}
							for _, k := range keys {
								var n int64
								if err := q.QueryRow(ctx, "select n from public.counter where name = $1", k).Scan(&n); err != nil {
									return err
								}
								if _, err := q.Exec(ctx, "update public.counter set n = $2::int8 + 1 where name = $1", k, n); err != nil {
									return err
								}
							}
							return nil
						})
						if err != nil {
							return err
						}
					}
					return nil
				})
			}
			require.NoError(t, g.Wait())
			require.Equal(t, int64(2*workers*rounds), get[int64](t, db, "select sum(n)::int8 from public.counter"))
		})
	}
}

func TestInTxOutOfTime(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			r := runner(t, db).With(tx.Options{LockTimeout: 1234 * time.Millisecond})
			for _, wait := range []time.Duration{0, 30 * time.Millisecond} {
				holding(t, db, func() {
					for _, keys := range [][]string{{"b"}, {"a", "b", "c", "d"}} {
						require.NoError(t, r.InRootWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
							q := handle(t, tr)
							err := lock.InTx(ctx, tr, wait, keys...)
							require.ErrorIs(t, err, fault.LockAcquisitionTimeout)
							require.NotErrorIs(t, err, fault.DBLockTimeout)
							require.Zero(t, get[int64](t, q, advisoryLocks), "what was free is free again")
							require.Equal(t, "1234ms", get[string](t, q, "select current_setting('lock_timeout')"))
							exec(t, q, "update shop.items set qty = qty + 1 where id = 1")
							return nil
						}))
					}
				}, "b")
			}
			require.Equal(t, int64(5), get[int64](t, db, "select qty from shop.items where id = 1"), "the transaction had gone on")
		})
	}
}

// A wait that has passed is one ERROR in the server's log, and a try that fails is none.
func TestInTxLeavesOneErrorInTheLog(t *testing.T) {
	s := pgtest.PrivateServer(t, &embedded.Options{FsyncOff: true, Settings: map[string]string{"lc_messages": "C"}})
	db := open(t, postgres.Config{DSN: s.DSN()})
	troubles := func() int {
		log, err := os.ReadFile(filepath.Join(s.DataDir(), "server.log"))
		require.NoError(t, err)
		return strings.Count(string(log), "ERROR: ") + strings.Count(string(log), "WARNING: ")
	}
	before := troubles()
	holding(t, db, func() {
		for wait, want := range map[time.Duration]int{0: 0, 10 * time.Millisecond: 1} {
			before := troubles()
			require.ErrorIs(t, runner(t, db).InNew(t.Context(), func(ctx context.Context, tr *tx.Tx) error { return lock.InTx(ctx, tr, wait, "a", "b") }),
				fault.LockAcquisitionTimeout)
			require.Equal(t, want, troubles()-before, wait)
		}
	}, "b")
	require.Equal(t, 1, troubles()-before)
}

func TestInTxWaits(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode, StatementTimeout: time.Minute})
			waiter := runner(t, db).With(tx.Options{LockTimeout: 77 * time.Second})
			for _, end := range []error{nil, errors.New("rolled back")} {
				got := make(chan error, 1)
				err := runner(t, db).InWrite(t.Context(), func(ctx context.Context, held *tx.Tx) error {
					require.NoError(t, lock.InTx(ctx, held, 0, "b"))
					require.NoError(t, lock.InTx(ctx, held, 0, "b", "a"), "held already")
					go func() {
						got <- waiter.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
							if err := lock.InTx(ctx, tr, 50*time.Second, "c", "b", "a"); err != nil {
								return err
							}
							var timeout string
							var locks int64
							q, err := postgres.Querier(tr)
							if err == nil {
								err = q.QueryRow(ctx, "select current_setting('lock_timeout'), ("+advisoryLocks+")").Scan(&timeout, &locks)
							}
							if err == nil && (timeout != "77s" || locks != 3) {
								err = errors.New("lock_timeout is " + timeout)
							}
							return err
						})
					}()
					queued(t, db)
					return end
				})
				require.ErrorIs(t, err, end)
				require.NoError(t, <-got)
				require.True(t, free(t, db, "a"))
			}
		})
	}
}

// The lock is the one that the documentation tells an operator how to find.
func TestInTxTakesOneBigint(t *testing.T) {
	db := shop(t, postgres.Config{})
	require.NoError(t, runner(t, db).InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		require.NoError(t, lock.InTx(ctx, tr, 0, "order:42"))
		require.Equal(t, int64(1), get[int64](t, handle(t, tr), `select count(*)::int8 from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()
			and mode = 'ExclusiveLock' and objsubid = 1
			and (classid::int8 << 32 | objid::int8) = ('x' || encode(substr(sha256('order:42'), 1, 8), 'hex'))::bit(64)::bigint`))
		return nil
	}))
}

func TestInTxEndsWithTheSavepointThatIsUndone(t *testing.T) {
	db := shop(t, postgres.Config{})
	boom := errors.New("boom")
	require.NoError(t, runner(t, db).InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		require.ErrorIs(t, tr.Savepoint(ctx, func(ctx context.Context) error {
			require.NoError(t, lock.InTx(ctx, tr, 0, "undone", "too"))
			return boom
		}), boom)
		require.NoError(t, tr.Savepoint(ctx, func(ctx context.Context) error { return lock.InTx(ctx, tr, 0, "kept", "too") }))
		require.True(t, free(t, db, "undone"))
		require.False(t, free(t, db, "kept"))
		return nil
	}))
	require.True(t, free(t, db, "kept"))
}

func TestInTxCanceled(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode, MaxConns: 2, StatementTimeout: time.Minute})
			watch := open(t, sameDatabase(db, postgres.Config{}))
			waiter := runner(t, db)
			var pid int64
			holding(t, db, func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					ended <- waiter.InWrite(ctx, func(ctx context.Context, tr *tx.Tx) error {
						q, err := postgres.Querier(tr)
						if err == nil {
							err = q.QueryRow(ctx, "select pg_backend_pid()::int8").Scan(&pid)
						}
						if err != nil {
							return err
						}
						if err := lock.InTx(ctx, tr, 50*time.Second, "a", "b"); !errors.Is(err, context.Canceled) {
							return errors.Join(errors.New("it was not canceled"), err)
						}
						return nil // as if all were well
					})
				}()
				queued(t, watch)
				cancel()
				err := within(t, "a canceled wait", func() error { return <-ended })
				require.Error(t, err, "a dead transaction cannot commit")
				require.NotErrorIs(t, err, fault.LockAcquisitionTimeout)
				require.NotContains(t, err.Error(), "it was not canceled")
				waitGone(t, watch, pid)
				require.True(t, free(t, watch, "a"))
			}, "b")
			require.True(t, free(t, db, "b"))
		})
	}
}

func TestInTxRefusals(t *testing.T) {
	db := shop(t, postgres.Config{})
	r := runner(t, db)
	require.Error(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		require.ErrorContains(t, lock.InTx(ctx, tr, 10*time.Second, "a"), "wait is 10s, and statement_timeout, 10s, ends the statement that waits")
		_, err := handle(t, tr).Exec(ctx, "select 1/0")
		require.Error(t, err)
		require.ErrorIs(t, lock.InTx(ctx, tr, 0, "a"), tx.ErrRollbackOnly, "a statement has failed")
		return nil
	}))
	require.ErrorIs(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		exec(t, handle(t, tr), "select 1")
		_, err := handle(t, tr).Exec(ctx, "commit")
		require.ErrorIs(t, err, fault.DBCommitUnknown)
		require.ErrorIs(t, lock.InTx(ctx, tr, 0, "a"), fault.DBCommitUnknown)
		return nil
	}), fault.DBCommitUnknown)
	require.NoError(t, r.InReadOnly(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		require.NoError(t, lock.InTx(ctx, tr, 0, "a", "b"), "a lock is no write")
		require.False(t, free(t, db, "a"))
		return nil
	}))
}
