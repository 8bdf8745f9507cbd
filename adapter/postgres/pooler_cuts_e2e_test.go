//go:build e2e

package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// Outcomes are looked up through the pooler as well, on either side of which the COMMIT may be cut.
func TestCutsThroughPgBouncer(t *testing.T) {
	direct := migrationstest.DSN(t, migrations.All()...)
	truth := open(t, postgres.Config{DSN: direct})
	exec(t, truth, "create schema shop; create table shop.cut (n int8 primary key)")
	before := proxytest.New(t, pgtest.PgBouncer(t, direct))
	behind := proxytest.New(t, direct)
	sides := map[string]struct {
		p   *proxytest.Proxy
		dsn string
	}{"before the pooler": {before, before.DSN()}, "behind the pooler": {behind, pgtest.PgBouncerAlone(t, behind.DSN())}}
	n := int64(0)
	for where, side := range sides {
		for _, mode := range pgtest.PoolerModes(t) {
			db := open(t, postgres.Config{DSN: side.dsn, ExecMode: mode, MaxConns: 1})
			require.True(t, postgres.BehindPooler(db))
			runner, err := tx.NewRunner(db, &tx.RunnerOptions{CommitTimeout: 500 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			ob, err := outbox.New(pgoutbox.New(db), nil)
			require.NoError(t, err)
			for _, cut := range []proxytest.Mode{proxytest.Before, proxytest.Half, proxytest.After, proxytest.OnAnswer, proxytest.Mute} {
				for _, e := range []evidence{row, event} {
					n++
					what := []any{"%s, %s, %s, %s", where, mode, cut, e}
					works(t, db)
					f := side.p.Break(cut, "commit\x00")
					hook := false
					err := runner.With(tx.Options{Witness: e == row}).InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) error {
						q, err := postgres.Querier(w)
						require.NoError(t, err)
						exec(t, q, "insert into shop.cut (n) values ($1)", n)
						require.NoError(t, w.AfterCommit(func(context.Context) error { hook = true; return nil }))
						if e == row {
							return nil
						}
						return ob.Append(ctx, w, outbox.Event{Type: "cut.made", AggregateType: "cut", AggregateID: "1", Payload: []byte("x")})
					})
					require.NotErrorIs(t, err, fault.DBCommitUnknown, what...)
					select {
					case <-f.Struck():
					case <-time.After(time.Minute):
						require.FailNow(t, "COMMIT was not cut", "%v", err)
					}
					committed := get[int64](t, truth, "select count(*) from shop.cut where n = $1", n) == 1
					require.Equal(t, committed, err == nil, what...)
					require.Equal(t, committed, hook, what...)
					if err != nil {
						require.True(t, errors.Is(err, fault.DBUnavailable) && fault.Retryable(err), what...)
					}
				}
			}
			require.Eventually(t, func() bool { return db.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond)
		}
	}
}
