package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// canary stands for a value, a secret or SQL in every place that an error could pick it up from.
const canary = "canary7"

func TestNothingLeaksIntoErrors(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			exec(t, db, "insert into shop.items (id, name, code) values (7, $1, $2)", canary, canary)
			var number int64
			causes := map[string]func(q postgres.DBTX) error{
				"detail": func(q postgres.DBTX) error {
					return run(t, q, "insert into shop.items (id, name, slot) values (7, 'canary7', '[1,2)')")
				},
				"message": func(q postgres.DBTX) error { return run(t, q, "select ($1::text)::int8", canary) },
				"raised": func(q postgres.DBTX) error {
					return run(t, q, "do $$ begin raise exception 'canary7' using errcode = '23505', detail = 'canary7', hint = 'canary7'; end $$")
				},
				"where": func(q postgres.DBTX) error {
					return run(t, q, "do $$ begin perform 1 / length('canary7') - 7 / 0; end $$")
				},
				"syntax":      func(q postgres.DBTX) error { return run(t, q, "selec canary7") },
				"argument":    func(q postgres.DBTX) error { return run(t, q, "select $1::int8", struct{ Canary7 string }{canary}) },
				"too many":    func(q postgres.DBTX) error { return run(t, q, "select 'canary7', $1::text", canary, canary) },
				"destination": func(q postgres.DBTX) error { return q.QueryRow(t.Context(), "select $1::text", canary).Scan(&number) },
				"columns":     func(q postgres.DBTX) error { return q.QueryRow(t.Context(), "select $1::text", canary).Scan() },
			}
			for name, cause := range causes {
				requireSilent(t, name, cause(db))
				c := begin(t, db, tx.BeginOptions{})
				requireSilent(t, name+" in a transaction", cause(c))
				require.NoError(t, c.Rollback(t.Context()))
				for way, begin := range beginners {
					joined := begin(t, db, "read committed")
					_, _, q := wrap(t, joined)
					requireSilent(t, name+" in a joined transaction, "+way, cause(q))
					require.NoError(t, joined.rollback())
				}
			}

			c := begin(t, db, tx.BeginOptions{})
			exec(t, c, "insert into shop.items (id, name, code) values (8, 'x', $1)", canary)
			err := c.Commit(t.Context())
			require.ErrorIs(t, err, fault.DBUniqueViolation)
			requireSilent(t, "commit", err)
			require.ErrorContains(t, err, "SQLSTATE 23505 severity=ERROR schema=shop table=items constraint=items_code_key routine=", "what the log does get")
		})
	}
}

func TestNothingLeaksFromTheDSN(t *testing.T) {
	for _, dsn := range []string{
		"postgres://canary7:canary7@127.0.0.1:1/canary7",
		"postgres://canary7:canary7@canary7.invalid/canary7",
		"postgres://canary7:canary7@[canary7/canary7",
		"canary7",
	} {
		_, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn}, nil)
		requireSilent(t, "DSN", err)
	}
}

// What a pool and a runner log by themselves, of the worst that may happen to them.
func TestNothingLeaksIntoTheLog(t *testing.T) {
	var out buffer
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	admin := shop(t, postgres.Config{})
	db, err := postgres.Open(t.Context(), postgres.Config{
		DSN:     with(t, admin.Config().DSN, func(u *url.URL) { u.RawQuery += "&sslpassword=" + canary }),
		ReadDSN: "postgres://canary7:canary7@127.0.0.1:1/canary7",
	}, &postgres.Options{Logger: log})
	require.NoError(t, err)
	closeAtEnd(t, db)
	runner, err := tx.NewRunner(db, &tx.RunnerOptions{ResolveTimeout: 50 * time.Millisecond, Logger: log})
	require.NoError(t, err)
	becomes(t, db, func(s postgres.ReplicaState) bool { return s.Reason == "unreachable" })

	end := func(w *tx.Tx) {
		q, err := postgres.Querier(w)
		require.NoError(t, err)
		exec(t, q, "insert into shop.items (id, name) values (7, 'canary7')")
		pid := backend(t, q)
		exec(t, admin, "select pg_terminate_backend($1)", pid)
		waitGone(t, admin, pid)
	}
	require.ErrorIs(t, runner.InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
		end(w)
		return nil
	}), fault.DBCommitUnknown)
	require.ErrorIs(t, runner.InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
		require.NoError(t, postgres.AddWitness(w, func(context.Context, postgres.DBTX) (tx.Outcome, error) { return tx.Unknown, errors.New(canary) }))
		end(w)
		return nil
	}), fault.DBCommitUnknown)
	require.NoError(t, runner.InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
		require.NoError(t, w.AfterCommit(func(context.Context) error { panic(canary) }))
		return w.AfterCommit(func(ctx context.Context) error {
			_, err := db.Exec(ctx, "select ($1::text)::int8", canary)
			return err
		})
	}))
	twice := runner.With(tx.Options{Retry: tx.Retry{Attempts: 2}})
	require.ErrorIs(t, twice.InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
		q, err := postgres.Querier(w)
		require.NoError(t, err)
		return run(t, q, "do $$ begin raise exception 'canary7' using errcode = '40001'; end $$")
	}), fault.DBSerializationFailure)
	require.PanicsWithValue(t, canary, func() {
		_ = runner.InWrite(t.Context(), func(context.Context, *tx.Tx) error { panic(canary) })
	})

	for _, line := range []string{
		"reads go to the primary", "outcome of a commit is unknown", "outcome of a commit stays unknown", "after-commit hook failed", "transaction is run again",
	} {
		require.Contains(t, out.String(), line)
	}
	require.NotContains(t, out.String(), canary)
	require.NotContains(t, out.String(), `"lag":-`, "a lag that is not known")
}

// buffer is a log that several goroutines write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// run is Exec in the shape of a cause.
func run(t *testing.T, q postgres.DBTX, sql string, args ...any) error {
	t.Helper()
	_, err := q.Exec(t.Context(), sql, args...)
	return err
}

func requireSilent(t *testing.T, name string, err error) {
	t.Helper()
	require.Error(t, err, name)
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&log, nil), slog.NewTextHandler(&log, nil)} {
		slog.New(h).ErrorContext(t.Context(), "failed", "error", err, "wrapped", fmt.Errorf("wrapped: %w", err))
	}
	for _, text := range []string{err.Error(), fmt.Sprintf("%v", err), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err), fmt.Sprintf("%+v", fmt.Errorf("x: %w", err)), log.String()} {
		require.NotContains(t, text, canary, name)
	}
}
