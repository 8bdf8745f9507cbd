package suite_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/testkit/suite"
)

func TestACheckReturnsWhatFailed(t *testing.T) {
	errBoom := errors.New("boom")
	run := func(f func()) error {
		return suite.Check[int]{Name: "one", Run: func(context.Context, int) { f() }}.Err(t.Context(), 0)
	}
	require.NoError(t, run(func() {
		suite.Must(nil, "all is well")
		suite.Equal([]int{1}, []int{1}, "numbers")
	}))
	require.EqualError(t, run(func() { suite.Equal(1, 2, "number") }), "number: want 1, got 2")
	require.ErrorIs(t, run(func() { suite.Must(errBoom, "all is well") }), errBoom)
	require.PanicsWithValue(t, "bug", func() { _ = run(func() { panic("bug") }) }, "a bug of the check is no failure of what it checks")
}

func TestEachCheckGetsItsOwn(t *testing.T) {
	made := 0
	var ran []int
	t.Run("checks", func(t *testing.T) {
		note := func(_ context.Context, n int) { ran = append(ran, n) }
		suite.Test(t, []suite.Check[int]{{Name: "one", Run: note}}, func(*testing.T) int { made++; return made })
		suite.Test(t, []suite.Check[int]{{Name: "two", Run: func(context.Context, int) {}}}, func(*testing.T) int { return 0 })
	})
	require.Equal(t, []int{1}, ran)
}
