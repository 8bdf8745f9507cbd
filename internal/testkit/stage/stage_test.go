package stage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/testkit/stage"
)

func TestPlay(t *testing.T) {
	var order []int
	var ctx context.Context
	stage.Play(func(tb testing.TB) {
		ctx = tb.Context()
		require.NoError(t, ctx.Err())
		tb.Cleanup(func() {
			require.Error(t, ctx.Err(), "clean-ups come after the context's end")
			order = append(order, 1)
		})
		tb.Cleanup(func() { order = append(order, 2) })
	})
	require.Equal(t, []int{2, 1}, order)
}

func TestWhatFailsPanics(t *testing.T) {
	cleaned := false
	require.PanicsWithValue(t, "want 1, got 2", func() {
		stage.Play(func(tb testing.TB) {
			tb.Cleanup(func() { cleaned = true })
			tb.Errorf("want %d, got %d", 1, 2)
		})
	})
	require.True(t, cleaned)
	require.Panics(t, func() { stage.Play(func(tb testing.TB) { require.Equal(tb, 1, 2) }) })
	require.Panics(t, func() { stage.Play(func(tb testing.TB) { tb.Fatal("no server") }) })
	require.Panics(t, func() { stage.Play(func(tb testing.TB) { tb.FailNow() }) })
}
