package backoff_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/backoff"
)

func TestBound(t *testing.T) {
	for _, c := range []struct {
		base, limit time.Duration
		n           int
		want        time.Duration
	}{
		{10, 100, -1, 10},
		{10, 100, 0, 10},
		{10, 100, 1, 10},
		{10, 100, 2, 20},
		{10, 100, 4, 80},
		{10, 100, 5, 100},
		{10, 80, 4, 80},
		{10, 100, math.MaxInt, 100},
		{10, math.MaxInt64, 1000, math.MaxInt64},
		{200, 100, 1, 100},
		{100, 60_000, 10, 51_200},
	} {
		require.Equal(t, c.want, backoff.Bound(c.base, c.limit, c.n), "%+v", c)
	}
}

// Each value that may come does, and no other: a missing end would be a herd, or a pause of nothing.
func TestChance(t *testing.T) {
	for name, c := range map[string]struct {
		draw      func() time.Duration
		low, high time.Duration
	}{
		"full":                {func() time.Duration { return backoff.FullJitter(5) }, 1, 5},
		"full of the least":   {func() time.Duration { return backoff.FullJitter(1) }, 1, 1},
		"jitter of a quarter": {func() time.Duration { return backoff.Jitter(20, 4) }, 15, 20},
		"jitter of a half":    {func() time.Duration { return backoff.Jitter(10, 2) }, 5, 10},
		"jitter of the least": {func() time.Duration { return backoff.Jitter(1, 2) }, 1, 1},
		"nothing of nothing":  {func() time.Duration { return backoff.Jitter(0, 2) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[time.Duration]bool{}
			for range 2000 {
				seen[c.draw()] = true
			}
			require.Len(t, seen, int(c.high-c.low)+1)
			require.True(t, seen[c.low] && seen[c.high])
		})
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		require.NoError(t, backoff.Wait(ctx, 59*time.Second))
		require.Equal(t, 59*time.Second, time.Since(start))
		require.ErrorIs(t, backoff.Wait(ctx, time.Hour), context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
	})
}
