package tx_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/tx"
)

func TestASwallowedFailureInsideAReadOnlyOneFailsTheCommit(t *testing.T) {
	r, d := newRunner(t)
	require.ErrorIs(t, r.InReadOnly(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		_ = r.InReadOnly(ctx, boom)
		return nil
	}), tx.ErrRollbackOnly)
	require.Equal(t, []string{"begin read only", "rollback"}, d.calls)
}

func TestJoiningAtTheSameIsolation(t *testing.T) {
	r, d := newRunner(t)
	strict := r.With(tx.Options{Isolation: tx.RepeatableRead})
	require.NoError(t, strict.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		return errors.Join(strict.InWrite(ctx, ok), strict.InReadOnly(ctx, ok))
	}))
	require.Equal(t, []string{"begin isolation 1", "savepoint s1 read only", "release s1", "commit"}, d.calls)
}

func TestNothingGoesOnInATransactionThatAPanicEnded(t *testing.T) {
	r, _ := newRunner(t)
	var ended *tx.Tx
	require.Panics(t, func() {
		_ = r.InWrite(t.Context(), func(_ context.Context, tr *tx.Tx) error {
			ended = tr
			panic("at the disco")
		})
	})
	_, err := tx.Unwrap(ended)
	require.ErrorIs(t, err, tx.ErrDone)
	require.ErrorIs(t, ended.AfterCommit(func(context.Context) error { return nil }), tx.ErrDone)
}

// A savepoint that was not made, or not released, leaves a transaction in which nobody knows what a rollback to it would undo.
func TestASavepointThatCannotBeginOrEndDooms(t *testing.T) {
	for _, call := range []string{"savepoint s1", "release s1"} {
		r, d := newRunner(t)
		d.fail[call] = errBoom
		err := r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			require.ErrorIs(t, tr.Savepoint(ctx, func(context.Context) error { return nil }), errBoom, call)
			return nil
		})
		require.ErrorIs(t, err, tx.ErrRollbackOnly, call)
		require.Equal(t, "rollback", d.calls[len(d.calls)-1], call)
	}
}

// What a savepoint undoes is what happened in it, and no more.
func TestASavepointDoesNotUndoAnEarlierFailure(t *testing.T) {
	for end, scope := range map[string]func(context.Context, *tx.Runner) error{
		"rollback to s1": func(context.Context, *tx.Runner) error { return errBoom },
		"release s1":     func(context.Context, *tx.Runner) error { return nil },
		// The scope inside fails as well, and is not told from the one before.
		"release s1, joined": func(ctx context.Context, r *tx.Runner) error { _ = r.InWrite(ctx, boom); return nil },
	} {
		r, d := newRunner(t)
		before := errors.New("before")
		err := r.InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) error {
			_ = r.InWrite(ctx, func(context.Context, *tx.Tx) error { return before })
			err := w.Savepoint(ctx, func(ctx context.Context) error { return scope(ctx, r) })
			require.NotErrorIs(t, err, tx.ErrRollbackOnly, end)
			return nil
		})
		require.ErrorIs(t, err, tx.ErrRollbackOnly, end)
		require.ErrorIs(t, err, before, end)
		require.Equal(t, []string{"begin", "savepoint s1", strings.TrimSuffix(end, ", joined"), "rollback"}, d.calls)
	}
}

func TestASavepointInsideInReadOnlyStaysReadOnly(t *testing.T) {
	r, _ := newRunner(t)
	require.NoError(t, r.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		return r.InReadOnly(ctx, func(ctx context.Context, tr *tx.Tx) error {
			require.NoError(t, tr.Savepoint(ctx, func(ctx context.Context) error {
				require.True(t, tr.ReadOnly())
				require.ErrorIs(t, r.InWrite(ctx, ok), tx.ErrReadOnly)
				return nil
			}))
			require.True(t, tr.ReadOnly())
			return nil
		})
	}))
}

func TestTheFirstReasonIsTold(t *testing.T) {
	r, _ := newRunner(t)
	later := errors.New("later")
	err := r.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		_ = r.InWrite(ctx, boom)
		_ = r.InWrite(ctx, func(context.Context, *tx.Tx) error { return later })
		return nil
	})
	require.ErrorIs(t, err, errBoom)
	require.NotErrorIs(t, err, later)
}

func TestErrSaysWhatIsLeftOfATransaction(t *testing.T) {
	r, _ := newRunner(t)
	var last *tx.Tx
	require.ErrorIs(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		last = tr
		require.NoError(t, tr.Err())
		require.ErrorIs(t, tr.Savepoint(ctx, func(ctx context.Context) error {
			_ = r.InWrite(ctx, boom)
			require.ErrorIs(t, tr.Err(), tx.ErrRollbackOnly)
			return errBoom
		}), errBoom)
		require.NoError(t, tr.Err(), "undone")
		_ = r.InWrite(ctx, boom)
		require.ErrorIs(t, tr.Err(), tx.ErrRollbackOnly)
		require.ErrorIs(t, tr.Err(), errBoom)
		return nil
	}), tx.ErrRollbackOnly)
	require.ErrorIs(t, last.Err(), tx.ErrDone)
}

// Two goroutines have scopes in one transaction, and the one that began first ends first: releasing its savepoint would end the other's.
func TestScopesThatCross(t *testing.T) {
	r, d := newRunner(t)
	err := r.InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) error {
		began, end, ended := make(chan struct{}), make(chan struct{}), make(chan error)
		err := w.Savepoint(ctx, func(context.Context) error {
			go func() {
				ended <- w.Savepoint(ctx, func(context.Context) error {
					close(began)
					<-end
					return nil
				})
			}()
			<-began
			return nil
		})
		require.ErrorIs(t, err, tx.ErrConcurrentUse)
		close(end)
		require.Error(t, <-ended)
		return nil // as if all were well
	})
	require.ErrorIs(t, err, tx.ErrRollbackOnly)
	require.ErrorIs(t, err, tx.ErrConcurrentUse)
	require.NotContains(t, d.calls, "commit")
}
