package postgres_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/tx"
)

// statement_timeout is over once a COMMIT's own work begins, so that a deferred trigger is bounded by us alone: by CommitTimeout, and by the
// request to cancel that follows it. Here that is lost (the proxy passes none on), and the server goes on for as long as it likes.
func TestACommitWhoseCancelIsLost(t *testing.T) {
	for name, k := range map[string]struct {
		witness, ends bool
		resolve       time.Duration
		want          error
	}{
		"it ends while it is looked up": {true, true, 30 * time.Second, nil},
		"it goes on":                    {true, false, 300 * time.Millisecond, fault.DBCommitUnknown},
		"nothing tells":                 {false, true, 30 * time.Second, fault.DBCommitUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			truth := shop(t, postgres.Config{DSN: migrationstest.DSN(t), MaxConns: 3})
			exec(t, truth, `create function shop.deferred() returns trigger language plpgsql as $$ begin perform from shop.items where id = 1 for update; return null; end $$`)
			exec(t, truth, `create constraint trigger late after insert on shop.parents deferrable initially deferred for each row execute function shop.deferred()`)
			db := open(t, postgres.Config{DSN: proxytest.New(t, truth.Config().DSN).DSN(), MaxConns: 2, LockTimeout: 50 * time.Millisecond})
			r, err := tx.NewRunner(db, &tx.RunnerOptions{CommitTimeout: time.Second, ResolveTimeout: k.resolve, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)

			hold := begin(t, truth, tx.BeginOptions{Options: tx.Options{IdleTimeout: time.Minute}})
			exec(t, hold, "select from shop.items where id = 1 for update")
			hooks := 0
			got := make(chan error, 1)
			go func() {
				got <- r.With(tx.Options{Witness: k.witness, StatementTimeout: 500 * time.Millisecond}).InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) error {
					q, err := postgres.Querier(w)
					if err != nil {
						return err
					}
					if err := w.AfterCommit(func(context.Context) error { hooks++; return nil }); err != nil {
						return err
					}
					_, err = q.Exec(ctx, "set local lock_timeout = 0; insert into shop.parents (id) values (3)")
					return err
				})
			}()
			if k.want == nil {
				eventually(t, truth, "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like 'insert into caskeleton.commit_witness%')")
			} else {
				require.ErrorIs(t, <-got, k.want, "bounded all the same")
				eventually(t, truth, "select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query = 'commit')")
			}
			require.NoError(t, hold.Rollback(t.Context()))
			if k.want == nil {
				require.NoError(t, <-got)
				require.Equal(t, 1, hooks)
			} else {
				require.Zero(t, hooks)
			}
			eventually(t, truth, "select count(*) = 3 from shop.parents")
		})
	}
}
