// Package backoff says how long to wait before something is tried again. A bound that doubles keeps what fails from being asked ever faster, and
// chance keeps those who failed together from coming back together: "full jitter" of Exponential Backoff And Jitter, AWS Architecture Blog, 2015.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Bound returns base doubled n-1 times, and limit once that is reached. It cannot overflow. n counts from 1; less means 1.
func Bound(base, limit time.Duration, n int) time.Duration {
	d := base
	for ; n > 1 && d < limit; n-- {
		if d > limit/2 {
			return limit
		}
		d *= 2
	}
	return min(d, limit)
}

// FullJitter returns anything above 0 up to d, which is positive.
func FullJitter(d time.Duration) time.Duration { return 1 + rand.N(d) } //nolint:gosec // spreading load needs no secrecy

// Jitter returns d shortened at random, by the given part of it at most: for 4, three quarters of d to all of it. It is for pauses that keep a
// rhythm.
func Jitter(d time.Duration, part int64) time.Duration {
	return d - rand.N(d/time.Duration(part)+1) //nolint:gosec // spreading load needs no secrecy
}

// Wait returns nil after d, or ctx's error once that ends.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
