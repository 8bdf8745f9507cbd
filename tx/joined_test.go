package tx_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/tx"
)

// theirs is a transaction that somebody else commits.
type theirs struct {
	recorded
	ended bool
}

func (c *theirs) Abort(ctx context.Context) {
	call := "abort"
	if _, bounded := ctx.Deadline(); !bounded {
		call += " (without a bound)"
	}
	_ = c.did(ctx, call)
}

func (c *theirs) Open(context.Context) bool { return !c.ended }

func join(t *testing.T) (*tx.Tx, *tx.Joined, *theirs) {
	t.Helper()
	c := &theirs{recorded: recorded{&recorder{fail: map[string]error{}}}}
	tr, j := tx.Join(c, tx.RepeatableRead, false)
	require.True(t, tr.Joined())
	return tr, j, c
}

func TestJoinedHooksRunWhenTheCallerHasCommitted(t *testing.T) {
	tr, j, c := join(t)
	r, d := newRunner(t)
	ctx := j.Context(t.Context(), r)
	require.NoError(t, tr.AfterCommit(note(&c.calls, "first")))
	require.NoError(t, tr.AfterCommit(func(ctx context.Context) error {
		_, bounded := ctx.Deadline()
		require.True(t, bounded)
		_, found := tx.FromContext(ctx)
		require.False(t, found)
		require.NoError(t, r.InRootWrite(ctx, ok), "it is hidden from hooks")
		panic("is reported, and no more")
	}))
	require.NoError(t, tr.AfterCommit(note(&c.calls, "third")))

	require.ErrorIs(t, j.Committed(ctx), tx.ErrOpen)
	require.Empty(t, c.calls)
	c.ended = true
	require.NoError(t, j.Committed(ctx))
	require.Equal(t, []string{"first", "third"}, c.calls)
	require.Equal(t, []string{"begin", "commit"}, d.calls)

	j.RolledBack()
	require.ErrorIs(t, j.Committed(ctx), tx.ErrDone)
	require.ErrorIs(t, tr.AfterCommit(ok1), tx.ErrDone)
	require.ErrorIs(t, r.InWrite(ctx, ok), tx.ErrDone)
	require.Len(t, c.calls, 2, "hooks ran once")
}

func ok1(context.Context) error { return nil }

func TestJoinedHooksAreDroppedByARollback(t *testing.T) {
	tr, j, c := join(t)
	require.NoError(t, tr.AfterCommit(note(&c.calls, "hook")))
	c.ended = true
	j.RolledBack()
	require.ErrorIs(t, j.Committed(t.Context()), tx.ErrDone)
	require.Empty(t, c.calls)
}

func TestVerbsInAJoinedTransaction(t *testing.T) {
	tr, j, c := join(t)
	r, d := newRunner(t)
	ctx := j.Context(t.Context(), r)
	found, active := tx.FromContext(ctx)
	require.True(t, active)
	require.Same(t, tr, found)
	require.True(t, r.Active(ctx))
	same := func(_ context.Context, got *tx.Tx) error {
		if got != tr {
			return errBoom
		}
		return nil
	}

	require.NoError(t, r.InWrite(ctx, same))
	nested := r.InRootWrite(ctx, ok)
	require.ErrorIs(t, nested, tx.ErrNestedRoot)
	require.ErrorContains(t, nested, "InWrite joins it")
	require.Empty(t, d.calls)
	require.NoError(t, r.InReadOnly(ctx, func(ctx context.Context, got *tx.Tx) error {
		require.ErrorIs(t, r.InWrite(ctx, ok), tx.ErrReadOnly)
		return same(ctx, got)
	}))
	require.Equal(t, []string{"savepoint s1 read only", "release s1"}, c.calls)
	require.NoError(t, r.InNew(ctx, func(_ context.Context, got *tx.Tx) error { require.NotSame(t, tr, got); return nil }))
	require.Equal(t, []string{"begin", "commit"}, d.calls, "InNew stands apart")

	require.ErrorIs(t, r.With(tx.Options{Witness: true}).InWrite(ctx, ok), tx.ErrJoined)
	require.ErrorContains(t, r.With(tx.Options{Isolation: tx.Serializable}).InWrite(ctx, ok), "less isolated")
	other, _ := newRunner(t)
	require.False(t, other.Active(ctx), "the context is for one runner")
}

func TestAFailedScopeKeepsTheCallerFromCommitting(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context, r *tx.Runner){
		"error": func(ctx context.Context, r *tx.Runner) { _ = r.InWrite(ctx, boom) },
		"panic": func(ctx context.Context, r *tx.Runner) {
			defer func() { _ = recover() }()
			_ = r.InWrite(ctx, func(context.Context, *tx.Tx) error { panic("at the disco") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr, j, c := join(t)
			r, _ := newRunner(t)
			require.NoError(t, tr.AfterCommit(note(&c.calls, "hook")))
			ctx, cancel := context.WithCancel(j.Context(t.Context(), r))
			cancel()
			fail(ctx, r)
			c.ended = true
			require.ErrorIs(t, j.Committed(t.Context()), tx.ErrRollbackOnly)
			require.Equal(t, []string{"abort"}, c.calls, "under a live context, and no hook ran")
		})
	}
}

func TestASavepointUndoesAFailedScope(t *testing.T) {
	tr, j, c := join(t)
	r, _ := newRunner(t)
	ctx := j.Context(t.Context(), r)
	require.ErrorIs(t, tr.Savepoint(ctx, func(ctx context.Context) error {
		require.NoError(t, tr.AfterCommit(note(&c.calls, "hook")))
		return r.InWrite(ctx, boom)
	}), errBoom)
	c.ended = true
	require.NoError(t, j.Committed(ctx))
	require.Equal(t, []string{"savepoint s1", "abort", "rollback to s1"}, c.calls)
}
