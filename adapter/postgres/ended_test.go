package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// A transaction that SQL of fn's has ended must not look like one that the runner committed or rolled back.
func TestSQLThatEndsTheTransaction(t *testing.T) {
	const insert = "insert into shop.parents (id) values (50)"
	ways := map[string]func(t *testing.T, q postgres.DBTX, sql string) error{
		"Exec": func(t *testing.T, q postgres.DBTX, sql string) error {
			t.Helper()
			_, err := q.Exec(t.Context(), sql)
			return err
		},
		"Exec with a mode": func(t *testing.T, q postgres.DBTX, sql string) error {
			t.Helper()
			_, err := q.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
			return err
		},
		"Query": func(t *testing.T, q postgres.DBTX, sql string) error {
			t.Helper()
			rows, err := q.Query(t.Context(), sql)
			rows.Close()
			return errors.Join(err, rows.Err())
		},
		"SendBatch": func(t *testing.T, q postgres.DBTX, sql string) error {
			t.Helper()
			b := &pgx.Batch{}
			b.Queue(sql)
			batcher, ok := q.(postgres.Batcher)
			require.True(t, ok)
			return batcher.SendBatch(t.Context(), b).Close()
		},
	}
	ends := map[string]error{ // what fn returns afterwards
		"error swallowed": nil,
		"another error":   errors.New("another"),
	}
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode, MaxConns: 1})
			runner, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			for way, do := range ways {
				for _, sql := range []string{
					"commit", "rollback", "end", "abort", "commit and chain", "end and chain", "rollback and chain", "ROLLBACK WORK AND /* on */ CHAIN", "abort and chain",
					"select 1; commit", "commit; select 1", "commit and chain; select 1", "rollback and chain; select 1", "rollback; begin", "select 1; commit; start transaction",
				} {
					if strings.Contains(sql, ";") && !strings.HasPrefix(way, "Exec") && mode != "simple_protocol" {
						continue // each of its texts is one statement
					}
					for end, result := range ends {
						what := way + " " + sql + ", " + end
						err := runner.InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) error {
							q, err := postgres.Querier(w)
							require.NoError(t, err)
							exec(t, q, "delete from shop.parents where id = 50")
							exec(t, q, insert)
							require.NoError(t, w.AfterCommit(func(context.Context) error { t.Error("a hook ran", what); return nil }))

							err = do(t, q, sql)
							require.ErrorIs(t, err, fault.DBCommitUnknown, what)
							require.ErrorContains(t, err, "leave COMMIT and ROLLBACK to the runner", what)
							for name, again := range ways { // it would commit by itself
								require.ErrorIs(t, again(t, q, insert), fault.DBCommitUnknown, what, name)
							}
							require.ErrorIs(t, w.Savepoint(ctx, func(context.Context) error { return nil }), fault.DBCommitUnknown, what)
							return result
						})
						require.ErrorIs(t, err, fault.DBCommitUnknown, what)
						require.False(t, fault.Retryable(err), what)
					}
				}
			}
			require.Eventually(t, func() bool { return db.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond)
		})
	}
}

func TestCommitAndRollbackAfterSQLThatEndedTheTransaction(t *testing.T) {
	db := shop(t, postgres.Config{MaxConns: 1})
	for _, sql := range []string{"commit", "rollback"} {
		for _, end := range []func(transaction) error{
			func(c transaction) error { return c.Commit(t.Context()) },
			func(c transaction) error { return c.Rollback(t.Context()) },
		} {
			c := begin(t, db, tx.BeginOptions{})
			_, err := c.Exec(t.Context(), sql)
			require.ErrorIs(t, err, fault.DBCommitUnknown)
			require.ErrorIs(t, end(c), fault.DBCommitUnknown, sql)
			require.Zero(t, db.Stat().AcquiredConns())
		}
	}
}

// While its rows are open, the connection cannot tell that a COMMIT has been answered, and that of the runner is never sent.
func TestRowsOfACommitThatAreLeftOpen(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			runner, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			for n, sql := range []string{"commit", "-- name: Done :exec\n/* of it all */ End", "\ncommit;"} {
				err := runner.InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) error {
					q, err := postgres.Querier(w)
					require.NoError(t, err)
					exec(t, q, "insert into shop.parents (id) values ($1)", 60+n)
					_, _ = q.Query(ctx, sql) //nolint:sqlclosecheck // this is the mistake
					return nil
				})
				require.ErrorIs(t, err, fault.DBCommitUnknown, sql)
				require.ErrorContains(t, err, "leave COMMIT and ROLLBACK to the runner", sql)
			}
			require.Eventually(t, func() bool { return db.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond)
		})
	}
}

// What a witness says is not about what fn did after it ended the transaction.
func TestAWitnessSaysNothingAboutSQLThatEndedTheTransaction(t *testing.T) {
	db := open(t, postgres.Config{DSN: migrationstest.DSN(t)})
	runner, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for _, sql := range []string{"commit", "rollback", "commit and chain", "commit; select 1"} {
		require.ErrorIs(t, runner.With(tx.Options{Witness: true}).InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) error {
			q, err := postgres.Querier(w)
			require.NoError(t, err)
			_, _ = q.Exec(ctx, sql)
			return w.AfterCommit(func(context.Context) error { t.Error("a hook ran", sql); return nil })
		}), fault.DBCommitUnknown, sql)
	}
}
