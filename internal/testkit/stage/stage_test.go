package stage_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/testkit/stage"
)

func TestCleanUpsComeLast(t *testing.T) {
	var order []int
	tb, end := stage.New()
	require.NoError(t, tb.Context().Err())
	tb.Cleanup(func() { order = append(order, 1) })
	tb.Cleanup(func() {
		require.Error(t, tb.Context().Err(), "after the context's end")
		order = append(order, 2)
	})
	require.Empty(t, order)
	end()
	require.Equal(t, []int{2, 1}, order)
}

func TestWhatFailsPanics(t *testing.T) {
	tb, end := stage.New()
	defer end()
	require.PanicsWithValue(t, "want 1, got 2", func() { tb.Errorf("want %d, got %d", 1, 2) })
	require.PanicsWithValue(t, "no server", func() { tb.Fatal("no server") })
	require.Panics(t, func() { tb.FailNow() })
	require.Panics(t, func() { require.Equal(tb, 1, 2) })
}
