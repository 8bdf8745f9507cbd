package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// What happens while the server works on COMMIT, as deferred triggers let it: the answer counts, and without one the witness.
func TestFailuresInsideCommit(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{DSN: migrationstest.DSN(t), ExecMode: mode, MaxConns: 3})
			exec(t, db, `create function shop.deferred() returns trigger language plpgsql as $$ begin execute current_setting('shop.deferred'); return null; end $$`)
			exec(t, db, `create constraint trigger late after insert on shop.parents deferrable initially deferred for each row execute function shop.deferred()`)
			runner, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			hasty, err := tx.NewRunner(db, &tx.RunnerOptions{CommitTimeout: 200 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			raise := func(state string) string {
				return "do $do$ begin raise exception 'x' using errcode = '" + state + "'; end $do$"
			}
			for _, k := range []struct {
				name, sql string
				want      error // nil: the error has no code
				unknown   bool  // without a witness
			}{
				{"no end", "select pg_sleep(60)", nil, true}, // statement_timeout is over once a COMMIT's work begins
				{"canceled by somebody else", "select pg_sleep(60), 'cancel me'", fault.DBQueryCanceled, false},
				{"lock_timeout", "select from shop.items where id = 1 for update", fault.DBLockTimeout, false},
				{"serialization failure", raise("40001"), fault.DBSerializationFailure, false},
				{"constraint", "insert into shop.big_parents values (7)", fault.DBCheckViolation, false},
				{"a state of the service's own", raise("P0001"), nil, false},
				{"a state that means unknown", raise("40003"), nil, true},
				{"a connection's state", raise("08006"), nil, true},
				{"the session is ended", "select pg_terminate_backend(pg_backend_pid())", nil, true},
			} {
				for _, witness := range []bool{false, true} {
					what := []any{"%s, witness %t", k.name, witness}
					hold := begin(t, db, tx.BeginOptions{})
					exec(t, hold, "select from shop.items where id = 1 for update")
					done := make(chan struct{})
					canceled := make(chan struct{})
					go func() {
						defer close(canceled)
						for k.name == "canceled by somebody else" {
							_, _ = db.Exec(t.Context(), `select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`)
							select {
							case <-done:
								return
							case <-time.After(5 * time.Millisecond):
							}
						}
					}()
					o := tx.Options{Witness: witness, StatementTimeout: time.Minute, LockTimeout: 50 * time.Millisecond}
					r := runner
					if k.name == "no end" {
						r = hasty
					}
					value, err := tx.Value(t.Context(), r.With(o).InWrite, func(ctx context.Context, w *tx.Tx) (int, error) {
						q, err := postgres.Querier(w)
						require.NoError(t, err)
						require.NoError(t, w.AfterCommit(func(context.Context) error { t.Error("a hook ran:", k.name); return nil }))
						_, err = q.Exec(ctx, "select set_config('shop.deferred', $1, true)", k.sql)
						require.NoError(t, err)
						_, err = q.Exec(ctx, "insert into shop.parents (id) values ($1)", 99)
						return 1, err
					})
					close(done)
					<-canceled
					require.Zero(t, value, what...)
					switch {
					case k.unknown && witness:
						require.ErrorIs(t, err, fault.DBUnavailable, what...)
					case k.unknown:
						require.ErrorIs(t, err, fault.DBCommitUnknown, what...)
					case k.want == nil:
						require.Equal(t, fault.Internal, fault.CodeOf(err), what...)
					default:
						require.ErrorIs(t, err, k.want, what...)
					}
					require.Equal(t, k.unknown && !witness, errors.Is(err, fault.DBCommitUnknown), what...)
					require.NoError(t, hold.Rollback(t.Context()))
					require.Eventually(t, func() bool { return db.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond, what...)
					eventually(t, db, "select not exists (select from pg_stat_activity where datname = current_database() and state <> 'idle' and pid <> pg_backend_pid())")
					require.Zero(t, get[int64](t, db, "select count(*) from shop.parents where id = 99"), what...)
				}
			}
		})
	}
}
