package tx_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// watched is a driver that writes down how long the last call of each transaction may take.
type watched struct {
	recorder

	bounds map[string]time.Duration
}

func (w *watched) Begin(ctx context.Context, o tx.BeginOptions) (tx.Conn, error) {
	c, err := w.recorder.Begin(ctx, o)
	return watchedConn{c, w}, err
}

type watchedConn struct {
	tx.Conn
	driver *watched
}

func (c watchedConn) Commit(ctx context.Context) error {
	c.driver.bounds["commit"] = left(ctx)
	return c.Conn.Commit(ctx)
}

func (c watchedConn) Rollback(ctx context.Context) error {
	c.driver.bounds["rollback"] = left(ctx)
	return c.Conn.Rollback(ctx)
}

// left is how long ctx lasts, 0 where it has no end.
func left(ctx context.Context) time.Duration {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return 0
	}
	return time.Until(deadline)
}

func TestWhatFollowsFnIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		o                      tx.RunnerOptions
		commit, rollback, hook time.Duration
	}{
		"by default": {tx.RunnerOptions{}, 10 * time.Second, 5 * time.Second, 10 * time.Second},
		"as set":     {tx.RunnerOptions{CommitTimeout: time.Second, RollbackTimeout: 2 * time.Second, HookTimeout: 3 * time.Second}, time.Second, 2 * time.Second, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &watched{bounds: map[string]time.Duration{}}
				r, err := tx.NewRunner(d, &c.o)
				require.NoError(t, err)
				require.NoError(t, r.InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
					return w.AfterCommit(func(ctx context.Context) error {
						d.bounds["hook"] = left(ctx)
						return nil
					})
				}))
				require.ErrorIs(t, r.InWrite(t.Context(), boom), errBoom)
				require.Equal(t, map[string]time.Duration{"commit": c.commit, "rollback": c.rollback, "hook": c.hook}, d.bounds)
			})
		})
	}
}

// A hook that does not heed its context is waited for: it has an owner, and the next one may rely on what it did.
func TestAHookThatTakesTooLongDelaysTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newRunner(t)
		require.NoError(t, r.InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
			require.NoError(t, w.AfterCommit(func(ctx context.Context) error {
				<-time.After(time.Minute) // of the bubble's clock
				return note(&d.calls, "slow")(ctx)
			}))
			return w.AfterCommit(func(ctx context.Context) error {
				require.NoError(t, ctx.Err(), "the bound is of each hook")
				return note(&d.calls, "next")(ctx)
			})
		}))
		require.Equal(t, []string{"begin", "commit", "slow", "next"}, d.calls)
	})
}

// fn's error is the whole result: what becomes of the rollback is for the log.
func TestAFailedRollbackIsReportedAndChangesNothing(t *testing.T) {
	d := &recorder{fail: map[string]error{"rollback": fault.DBUnavailable}}
	var log bytes.Buffer
	r, err := tx.NewRunner(d, &tx.RunnerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.Equal(t, errBoom, r.InWrite(t.Context(), boom))
	require.Contains(t, log.String(), "rollback failed")
	require.Contains(t, log.String(), "DB_UNAVAILABLE")
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	r, d := newRunner(t)
	for field, o := range map[string]tx.Options{
		"StatementTimeout": {StatementTimeout: -1}, "LockTimeout": {LockTimeout: -1}, "IdleTimeout": {IdleTimeout: -1}, "Isolation is -1": {Isolation: -1}, "Isolation is 3": {Isolation: 3},
	} {
		for name, verb := range map[string]pick{
			"InWrite": inWrite, "InReadOnly": inReadOnly, "InRootWrite": func(r *tx.Runner) verb { return r.InRootWrite }, "InNew": func(r *tx.Runner) verb { return r.InNew },
		} {
			require.ErrorContains(t, verb(r.With(o))(t.Context(), ok), field, name)
		}
		_, err := tx.NewRunner(d, &tx.RunnerOptions{Options: o})
		require.ErrorContains(t, err, field)
	}
	for field, o := range map[string]tx.RunnerOptions{
		"CommitTimeout": {CommitTimeout: -1}, "RollbackTimeout": {RollbackTimeout: -1}, "ResolveTimeout": {ResolveTimeout: -1}, "HookTimeout": {HookTimeout: -1},
	} {
		_, err := tx.NewRunner(d, &o)
		require.ErrorContains(t, err, field+" is -1ns; it must be positive")
	}
	require.Empty(t, d.calls)
}
