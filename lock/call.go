package lock

import (
	"context"
	"time"

	"caskeleton.dev/internal/backoff"
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
	for try := 1; ; try++ {
		answer, err := request(detached)
		if !collided(err) {
			return answer, err
		}
		select {
		case <-time.After(backoff.Jitter(backoff.Bound(firstRetry, longestRetry, try), 2)):
		case <-ctx.Done():
			return answer, err
		case <-detached.Done():
			return answer, err
		}
	}
}
