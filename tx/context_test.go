package tx_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/tx"
)

// TestFromContext looks from each place that a context can come from, with two runners.
func TestFromContext(t *testing.T) {
	a, _ := newRunner(t)
	b, _ := newRunner(t)
	find := func(ctx context.Context) *tx.Tx {
		found, ok := tx.FromContext(ctx)
		assert.Equal(t, found != nil, ok)
		return found
	}
	require.Nil(t, find(t.Context()), "nothing is active")

	var ended context.Context
	require.NoError(t, a.InWrite(t.Context(), func(ctx context.Context, outer *tx.Tx) error {
		ended = ctx //nolint:fatcontext // looked at after its end
		require.Same(t, outer, find(ctx))
		require.NoError(t, b.InWrite(ctx, func(ctx context.Context, inner *tx.Tx) error {
			require.Same(t, inner, find(ctx), "the innermost")
			return inner.AfterCommit(func(ctx context.Context) error {
				assert.Same(t, outer, find(ctx), "the other runner's is still open around the hook")
				return nil
			})
		}))
		require.NoError(t, a.InNew(ctx, func(_ context.Context, inner *tx.Tx) error {
			return inner.AfterCommit(func(ctx context.Context) error {
				assert.Nil(t, find(ctx), "hidden from hooks of the same runner")
				return nil
			})
		}))
		require.Same(t, outer, find(ctx), "the inner ones have ended")
		return nil
	}))
	require.Nil(t, find(ended), "it has ended")
}
