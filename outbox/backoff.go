package outbox

import (
	"math/rand/v2"
	"time"
)

// ceiling returns base doubled n-1 times, and limit once that is reached. It cannot overflow.
func ceiling(base, limit time.Duration, n int) time.Duration {
	d := base
	for ; n > 1 && d < limit; n-- {
		if d > limit/2 {
			return limit
		}
		d *= 2
	}
	return min(d, limit)
}

// fullJitter spreads retries over the whole of (0, d], so that lanes that failed together do not come back together.
func fullJitter(d time.Duration) time.Duration { return 1 + rand.N(d) } //nolint:gosec // spreading load needs no secrecy

// jitter returns d less up to a quarter of it.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/4+1) } //nolint:gosec // spreading load needs no secrecy
