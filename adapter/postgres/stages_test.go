package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/tx"
)

// However fn ends, and wherever it is then, nothing is kept and every connection comes back.
func TestFnThatEndsAtAnyStage(t *testing.T) {
	errStop := errors.New("stop")
	ends := map[string]func(ctx context.Context, cancel context.CancelFunc) error{
		"error":    func(context.Context, context.CancelFunc) error { return errStop },
		"panic":    func(context.Context, context.CancelFunc) error { panic(errStop) },
		"Goexit":   func(context.Context, context.CancelFunc) error { runtime.Goexit(); return nil },
		"cancel":   func(ctx context.Context, cancel context.CancelFunc) error { cancel(); return ctx.Err() },
		"deadline": nil, // ends the statement that waits for it
	}
	type stage = func(ctx context.Context, r *tx.Runner, w *tx.Tx, q postgres.DBTX, end func(context.Context) error) error
	stages := map[string]stage{
		"between statements": func(ctx context.Context, _ *tx.Runner, _ *tx.Tx, _ postgres.DBTX, end func(context.Context) error) error {
			return end(ctx)
		},
		"with rows open": func(ctx context.Context, _ *tx.Runner, _ *tx.Tx, q postgres.DBTX, end func(context.Context) error) error {
			rows, err := q.Query(ctx, "select generate_series(1, 100000)")
			if err != nil || !rows.Next() {
				return errors.New("no rows")
			}
			return end(ctx)
		},
		"with a batch open": func(ctx context.Context, _ *tx.Runner, _ *tx.Tx, q postgres.DBTX, end func(context.Context) error) error {
			b := &pgx.Batch{}
			b.Queue("select generate_series(1, 100000)")
			q.(postgres.Batcher).SendBatch(ctx, b)
			return end(ctx)
		},
		"after a failed statement": func(ctx context.Context, _ *tx.Runner, _ *tx.Tx, q postgres.DBTX, end func(context.Context) error) error {
			if _, err := q.Exec(ctx, "insert into shop.parents (id) values (1)"); err == nil {
				return errors.New("it did not fail")
			}
			return end(ctx)
		},
		"in a savepoint": func(ctx context.Context, _ *tx.Runner, w *tx.Tx, _ postgres.DBTX, end func(context.Context) error) error {
			return w.Savepoint(ctx, end)
		},
		"in a read-only scope": func(ctx context.Context, r *tx.Runner, _ *tx.Tx, _ postgres.DBTX, end func(context.Context) error) error {
			return r.InReadOnly(ctx, func(ctx context.Context, _ *tx.Tx) error { return end(ctx) })
		},
		"in a joined scope": func(ctx context.Context, r *tx.Runner, _ *tx.Tx, _ postgres.DBTX, end func(context.Context) error) error {
			return r.InWrite(ctx, func(ctx context.Context, _ *tx.Tx) error { return end(ctx) })
		},
		"in InNew": func(ctx context.Context, r *tx.Runner, _ *tx.Tx, _ postgres.DBTX, end func(context.Context) error) error {
			return r.InNew(ctx, func(ctx context.Context, own *tx.Tx) error {
				q, err := postgres.Querier(own)
				if err != nil {
					return err
				}
				if _, err := q.Exec(ctx, "insert into shop.parents (id) values (71)"); err != nil {
					return err
				}
				return end(ctx)
			})
		},
	}
	db := shop(t, postgres.Config{MaxConns: 2})
	r, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for at, stage := range stages {
		for how, end := range ends {
			what := how + " " + at
			ctx, cancel := context.WithCancel(t.Context())
			if end == nil {
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
				end = func(ctx context.Context, _ context.CancelFunc) error { <-ctx.Done(); return ctx.Err() }
			}
			var failed error
			returned, panicked := false, any(nil)
			var gone sync.WaitGroup
			gone.Go(func() {
				defer func() { panicked = recover() }()
				failed = r.InWrite(ctx, func(ctx context.Context, w *tx.Tx) error {
					q, err := postgres.Querier(w)
					if err != nil {
						return err
					}
					if err := w.AfterCommit(func(context.Context) error { t.Error("a hook ran:", what); return nil }); err != nil {
						return err
					}
					if _, err := q.Exec(ctx, "insert into shop.parents (id) values (70)"); err != nil {
						return err
					}
					return stage(ctx, r, w, q, func(ctx context.Context) error { return end(ctx, cancel) })
				})
				returned = true
			})
			gone.Wait()
			cancel()
			switch how {
			case "panic":
				require.Equal(t, errStop, panicked, what)
			case "Goexit":
				require.False(t, returned, what)
				require.Nil(t, panicked, what)
			case "error":
				require.ErrorIs(t, failed, errStop, what)
			case "cancel":
				require.ErrorIs(t, failed, context.Canceled, what)
			case "deadline":
				require.ErrorIs(t, failed, context.DeadlineExceeded, what)
			}
			require.Eventually(t, func() bool { return db.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond, what)
			require.Zero(t, get[int64](t, db, "select count(*) from shop.parents where id in (70, 71)"), what)
		}
	}
}
