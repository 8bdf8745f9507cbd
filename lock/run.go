package lock

import (
	"context"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
)

// Pauses after a connection was lost, for the first and at most.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// Run listens for releases in other processes until ctx ends, and then returns nil. A connection that is lost is made anew. Run it once, in a
// goroutine beside the service; without it, or where the driver is no [Listener], waiters find by polling what they do not hear of.
func (l *Locker) Run(ctx context.Context) error {
	listener, ok := l.driver.(Listener)
	if !ok {
		<-ctx.Done()
		return nil
	}
	pause := firstPause
	for {
		err := listener.Listen(ctx, func() {
			pause = firstPause
			l.lines.ringAll() // what was released before may have been missed
		}, l.lines.ring)
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		l.opts.Logger.WarnContext(ctx, "releases of locks in other processes are not heard, so waiters poll; listening again", "pause", pause, "error", fault.Reason(err))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(backoff.Jitter(pause, 2)):
		}
		pause = min(2*pause, longestPause)
	}
}
