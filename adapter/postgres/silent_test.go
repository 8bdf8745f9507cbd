package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/tx"
)

// Whichever of our own messages gets no answer, a caller who leaves is let go at once, nothing is kept, and the connection comes back.
func TestACallerLeavesWhileAMessageGetsNoAnswer(t *testing.T) {
	direct := shop(t, postgres.Config{DSN: pgtest.DSN(t)})
	p := proxytest.New(t, direct.Config().DSN)
	db := open(t, postgres.Config{DSN: p.DSN(), MaxConns: 1, AcquireTimeout: 5 * time.Second})
	runner, err := tx.NewRunner(db, &tx.RunnerOptions{RollbackTimeout: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	errStop := errors.New("stop")
	scope := func(result error) func(context.Context, *tx.Tx) error {
		return func(ctx context.Context, w *tx.Tx) error {
			return w.Savepoint(ctx, func(context.Context) error { return result })
		}
	}
	for name, k := range map[string]struct {
		message string
		fn      func(ctx context.Context, w *tx.Tx) error
		want    error
	}{
		"BEGIN":                  {"begin isolation", scope(nil), context.Canceled},
		"SAVEPOINT":              {`savepoint "s1"`, scope(nil), context.Canceled},
		"SAVEPOINT, swallowed":   {`savepoint "s1"`, func(ctx context.Context, w *tx.Tx) error { _ = scope(nil)(ctx, w); return nil }, tx.ErrRollbackOnly},
		"RELEASE":                {`release savepoint "s1"`, scope(nil), context.Canceled},
		"RELEASE, swallowed":     {`release savepoint "s1"`, func(ctx context.Context, w *tx.Tx) error { _ = scope(nil)(ctx, w); return nil }, tx.ErrRollbackOnly},
		"ROLLBACK TO":            {`rollback to savepoint "s1"`, scope(errStop), errStop},
		"ROLLBACK TO, swallowed": {`rollback to savepoint "s1"`, func(ctx context.Context, w *tx.Tx) error { _ = scope(errStop)(ctx, w); return nil }, tx.ErrRollbackOnly},
		"a read-only scope":      {"set local transaction_read_only", func(ctx context.Context, _ *tx.Tx) error { return runner.InReadOnly(ctx, ok) }, context.Canceled},
		"ROLLBACK":               {"rollback\x00", func(context.Context, *tx.Tx) error { return errStop }, errStop},
		"ROLLBACK of what failed": {"rollback\x00", func(ctx context.Context, _ *tx.Tx) error {
			_ = runner.InWrite(ctx, func(context.Context, *tx.Tx) error { return errStop })
			return nil
		}, tx.ErrRollbackOnly},
	} {
		works(t, db)
		mute := p.Break(proxytest.Mute, k.message)
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			<-mute.Struck()
			cancel()
		}()
		err := runner.InWrite(ctx, func(ctx context.Context, w *tx.Tx) error {
			q, err := postgres.Querier(w)
			require.NoError(t, err)
			exec(t, q, "insert into shop.parents (id) values (80)")
			require.NoError(t, w.AfterCommit(func(context.Context) error { t.Error("a hook ran:", name); return nil }))
			return k.fn(ctx, w)
		})
		<-left
		require.ErrorIs(t, err, k.want, name)
		require.Eventually(t, func() bool { return db.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond, name)
		eventually(t, direct, "select not exists (select from pg_locks where locktype = 'transactionid' and pid <> pg_backend_pid())")
		require.Zero(t, get[int64](t, direct, "select count(*) from shop.parents where id = 80"), name)
	}
}

func ok(context.Context, *tx.Tx) error { return nil }
