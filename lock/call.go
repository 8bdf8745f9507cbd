package lock

import (
	"context"
	"math/rand/v2"
	"time"
)

// answerTimeout is what a store is given to answer one request, whatever is left of a wait. A cancelled caller waits as long for the answer to what
// was sent: breaking off costs a connection, and what was broken off may take effect after the release that is to undo it.
const answerTimeout = time.Second

// Pauses after a collision, for the first and at most.
const (
	firstRetry   = time.Millisecond
	longestRetry = 50 * time.Millisecond
)

// call makes one request to the store, bounded, and again while the store reports a collision.
func call[T any](ctx context.Context, bound time.Duration, request func(ctx context.Context) (T, error)) (T, error) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, func() { time.AfterFunc(answerTimeout, cancel) })()
	}
	for pause := firstRetry; ; pause = min(2*pause, longestRetry) {
		answer, err := request(detached)
		if !collided(err) {
			return answer, err
		}
		select {
		case <-time.After(jitter(pause)):
		case <-ctx.Done():
			return answer, err
		case <-detached.Done():
			return answer, err
		}
	}
}

// jitter returns between half of d and all of it, so that those who began together do not meet again.
func jitter(d time.Duration) time.Duration { return d - rand.N(max(d/2, 1)) } //nolint:gosec // spreading load needs no secrecy
