package tx_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

func TestVerbsWithNothingActive(t *testing.T) {
	for name, c := range map[string]struct {
		verb  pick
		begin string
	}{
		"InWrite":     {func(r *tx.Runner) verb { return r.InWrite }, "begin"},
		"InRootWrite": {func(r *tx.Runner) verb { return r.InRootWrite }, "begin"},
		"InReadOnly":  {func(r *tx.Runner) verb { return r.InReadOnly }, "begin read only"},
		"InNew":       {func(r *tx.Runner) verb { return r.InNew }, "begin"},
	} {
		t.Run(name+" commits", func(t *testing.T) {
			r, d := newRunner(t)
			require.NoError(t, c.verb(r)(t.Context(), ok))
			require.Equal(t, []string{c.begin, "commit"}, d.calls)
		})
		t.Run(name+" rolls back and keeps the error", func(t *testing.T) {
			r, d := newRunner(t)
			d.fail["rollback"] = fault.DBUnavailable
			require.ErrorIs(t, c.verb(r)(t.Context(), boom), errBoom)
			require.Equal(t, []string{c.begin, "rollback"}, d.calls)
		})
		t.Run(name+" does not run fn when it cannot begin", func(t *testing.T) {
			r, d := newRunner(t)
			d.fail[c.begin] = fault.DBPoolExhausted
			require.ErrorIs(t, c.verb(r)(t.Context(), func(context.Context, *tx.Tx) error {
				t.Error("fn ran")
				return nil
			}), fault.DBPoolExhausted)
			require.Equal(t, []string{c.begin}, d.calls)
		})
		t.Run(name+" rolls back a panic and lets it go on", func(t *testing.T) {
			r, d := newRunner(t)
			require.PanicsWithValue(t, "at the disco", func() {
				_ = c.verb(r)(t.Context(), func(context.Context, *tx.Tx) error { panic("at the disco") })
			})
			require.Equal(t, []string{c.begin, "rollback"}, d.calls)
		})
		t.Run(name+" rolls back Goexit", func(t *testing.T) {
			r, d := newRunner(t)
			var wg sync.WaitGroup
			wg.Go(func() {
				_ = c.verb(r)(t.Context(), func(context.Context, *tx.Tx) error { runtime.Goexit(); return nil })
			})
			wg.Wait()
			require.Equal(t, []string{c.begin, "rollback"}, d.calls)
		})
	}
}

type pick = func(*tx.Runner) verb

func inWrite(r *tx.Runner) verb    { return r.InWrite }
func inReadOnly(r *tx.Runner) verb { return r.InReadOnly }

type verb = func(context.Context, func(context.Context, *tx.Tx) error) error

func TestVerbsWithATransactionActive(t *testing.T) {
	type call = func(r *tx.Runner, ctx context.Context) error
	write := func(r *tx.Runner, ctx context.Context) error { return r.InWrite(ctx, ok) }
	root := func(r *tx.Runner, ctx context.Context) error { return r.InRootWrite(ctx, ok) }
	read := func(r *tx.Runner, ctx context.Context) error { return r.InReadOnly(ctx, ok) }
	fresh := func(r *tx.Runner, ctx context.Context) error { return r.InNew(ctx, ok) }
	for name, c := range map[string]struct {
		outer pick
		inner call
		want  error
		calls []string
	}{
		"InWrite joins":              {inWrite, write, nil, []string{"begin", "commit"}},
		"InRootWrite is refused":     {inWrite, root, tx.ErrNestedRoot, []string{"begin", "commit"}},
		"InReadOnly joins, guarded":  {inWrite, read, nil, []string{"begin", "savepoint s1 read only", "release s1", "commit"}},
		"InNew suspends":             {inWrite, fresh, nil, []string{"begin", "begin", "commit", "commit"}},
		"InWrite in a read-only one": {inReadOnly, write, tx.ErrReadOnly, []string{"begin read only", "commit"}},
		"InReadOnly in a read-only":  {inReadOnly, read, nil, []string{"begin read only", "commit"}},
		"InNew in a read-only one":   {inReadOnly, fresh, nil, []string{"begin read only", "begin", "commit", "commit"}},
		"InRootWrite in a read-only": {inReadOnly, root, tx.ErrNestedRoot, []string{"begin read only", "commit"}},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newRunner(t)
			require.NoError(t, c.outer(r)(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
				require.ErrorIs(t, c.inner(r, ctx), c.want)
				return nil
			}))
			require.Equal(t, c.calls, d.calls)
		})
	}
}

func TestRefusedRootNeverRunsFn(t *testing.T) {
	r, d := newRunner(t)
	require.False(t, r.Active(t.Context()))
	require.NoError(t, r.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		before := len(d.calls)
		require.True(t, r.Active(ctx))
		err := r.InRootWrite(ctx, func(context.Context, *tx.Tx) error {
			t.Error("fn ran")
			return nil
		})
		require.Equal(t, fault.TXNestedRoot, fault.CodeOf(err))
		require.Len(t, d.calls, before)
		return nil
	}))
}

func TestSwallowedFailureOfAJoinedScopeFailsTheCommit(t *testing.T) {
	for name, inner := range map[string]func(r *tx.Runner, ctx context.Context){
		"error":           func(r *tx.Runner, ctx context.Context) { _ = r.InWrite(ctx, boom) },
		"read-only error": func(r *tx.Runner, ctx context.Context) { _ = r.InReadOnly(ctx, boom) },
		"panic": func(r *tx.Runner, ctx context.Context) {
			defer func() { _ = recover() }()
			_ = r.InWrite(ctx, func(context.Context, *tx.Tx) error { panic("swallowed") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, d := newRunner(t)
			err := r.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
				inner(r, ctx)
				return nil
			})
			require.ErrorIs(t, err, tx.ErrRollbackOnly)
			if name != "panic" {
				require.ErrorIs(t, err, errBoom)
				require.ErrorContains(t, err, "its error was swallowed")
			}
			require.NotContains(t, d.calls, "commit")
			require.Equal(t, "rollback", d.calls[len(d.calls)-1])
		})
	}
}

func TestInNewStandsApart(t *testing.T) {
	r, d := newRunner(t)
	require.ErrorIs(t, r.InWrite(t.Context(), func(ctx context.Context, outer *tx.Tx) error {
		require.NoError(t, r.InNew(ctx, func(ctx context.Context, inner *tx.Tx) error {
			require.NotSame(t, outer, inner)
			return r.InWrite(ctx, func(_ context.Context, joined *tx.Tx) error {
				require.Same(t, inner, joined)
				return nil
			})
		}))
		require.ErrorIs(t, r.InNew(ctx, boom), errBoom)
		return errBoom
	}), errBoom)
	require.Equal(t, []string{"begin", "begin", "commit", "begin", "rollback", "rollback"}, d.calls)
}

func TestFinishedTransactionIsRefused(t *testing.T) {
	r, d := newRunner(t)
	var stale context.Context
	var ended *tx.Tx
	require.NoError(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		stale, ended = ctx, tr //nolint:fatcontext // the leak is what is tested
		return nil
	}))
	for name, v := range map[string]verb{"InWrite": r.InWrite, "InRootWrite": r.InRootWrite, "InReadOnly": r.InReadOnly, "InNew": r.InNew} {
		require.ErrorIs(t, v(stale, ok), tx.ErrDone, name)
	}
	require.ErrorIs(t, ended.AfterCommit(func(context.Context) error { return nil }), tx.ErrDone)
	require.ErrorIs(t, ended.Savepoint(stale, func(context.Context) error { return nil }), tx.ErrDone)
	_, err := tx.Unwrap(ended)
	require.ErrorIs(t, err, tx.ErrDone)
	require.Equal(t, []string{"begin", "commit"}, d.calls)
}

func TestRunnersDoNotJoinEachOther(t *testing.T) {
	a, da := newRunner(t)
	b, db := newRunner(t)
	require.NoError(t, a.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error { return b.InWrite(ctx, ok) }))
	require.Equal(t, []string{"begin", "commit"}, da.calls)
	require.Equal(t, []string{"begin", "commit"}, db.calls)
}

func TestWithOtherOptions(t *testing.T) {
	r, d := newRunner(t)
	strict := r.With(tx.Options{Isolation: tx.Serializable})
	require.NoError(t, strict.InWrite(t.Context(), func(ctx context.Context, outer *tx.Tx) error {
		return r.InWrite(ctx, func(_ context.Context, joined *tx.Tx) error {
			require.Same(t, outer, joined, "a copy joins what the original began")
			return nil
		})
	}))
	require.NoError(t, r.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		require.ErrorContains(t, strict.InWrite(ctx, ok), "less isolated")
		require.ErrorContains(t, strict.InReadOnly(ctx, ok), "less isolated")
		return nil
	}))
	require.ErrorContains(t, r.With(tx.Options{LockTimeout: -1}).InWrite(t.Context(), ok), "LockTimeout")
	require.Equal(t, []string{"begin isolation 2", "commit", "begin", "commit"}, d.calls)
}

func TestTheCallersCancellationReachesNeitherCommitNorRollback(t *testing.T) {
	for end, result := range map[string]error{"commit": nil, "rollback": errBoom} {
		r, d := newRunner(t)
		ctx, cancel := context.WithCancel(t.Context())
		require.ErrorIs(t, r.InWrite(ctx, func(context.Context, *tx.Tx) error {
			cancel()
			return result
		}), result)
		require.Equal(t, []string{"begin", end}, d.calls)
	}
}

func TestValueIsReturnedOnlyOnceCommitted(t *testing.T) {
	r, d := newRunner(t)
	one := func(context.Context, *tx.Tx) (int, error) { return 1, nil }
	v, err := tx.Value(t.Context(), r.InWrite, one)
	require.NoError(t, err)
	require.Equal(t, 1, v)

	d.fail["commit"] = fault.DBCommitUnknown
	v, err = tx.Value(t.Context(), r.InWrite, one)
	require.ErrorIs(t, err, fault.DBCommitUnknown)
	require.Zero(t, v)
}

func TestNewRunnerRefusesWhatCannotWork(t *testing.T) {
	_, err := tx.NewRunner(nil, nil)
	require.ErrorContains(t, err, "driver")
	_, err = tx.NewRunner(&recorder{}, &tx.RunnerOptions{CommitTimeout: -1})
	require.ErrorContains(t, err, "CommitTimeout")
	_, err = tx.NewRunner(&recorder{}, &tx.RunnerOptions{Options: tx.Options{Isolation: 7}})
	require.ErrorContains(t, err, "Isolation is 7")
	_, err = tx.NewRunner(&recorder{}, &tx.RunnerOptions{ResolveTimeout: time.Second, Options: tx.Options{IdleTimeout: time.Second}})
	require.ErrorContains(t, err, "raise ResolveTimeout")
	r, d := newRunner(t)
	require.ErrorContains(t, r.With(tx.Options{IdleTimeout: 15 * time.Second}).InWrite(t.Context(), ok), "raise ResolveTimeout")
	require.Empty(t, d.calls)
	require.NoError(t, r.With(tx.Options{IdleTimeout: 14 * time.Second}).InWrite(t.Context(), ok))
}

func TestAReplicaTakesNoWrites(t *testing.T) {
	r, d := newRunner(t)
	onReplica := r.With(tx.Options{Replica: true})
	for name, verb := range map[string]func(context.Context, func(context.Context, *tx.Tx) error) error{
		"InWrite": onReplica.InWrite, "InRootWrite": onReplica.InRootWrite, "InNew": onReplica.InNew,
	} {
		err := verb(t.Context(), ok)
		require.ErrorIs(t, err, tx.ErrReadOnly, name)
		require.ErrorContains(t, err, "tx."+name)
		require.ErrorContains(t, err, "InReadOnly alone")
	}
	require.ErrorContains(t, r.With(tx.Options{Replica: true, Isolation: tx.Serializable}).InReadOnly(t.Context(), ok), "RepeatableRead")
	require.Empty(t, d.calls, "the database is not touched")
	require.NoError(t, onReplica.InReadOnly(t.Context(), ok))
	require.Equal(t, []string{"begin read only on the replica", "commit"}, d.calls)
}
