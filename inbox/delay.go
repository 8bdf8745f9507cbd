package inbox

import (
	"math/rand/v2"
	"time"
)

// delay is exponential back-off with full jitter: anything above 0 up to BaseDelay * 2^(attempt-1), at most MaxDelay.
func (o *Options) delay(attempt int) time.Duration {
	bound := o.BaseDelay
	for ; attempt > 1 && bound < o.MaxDelay; attempt-- {
		bound *= 2 // MaxDelay is far from where this could overflow
	}
	return 1 + rand.N(min(bound, o.MaxDelay)) //nolint:gosec // jitter needs no secrecy
}
