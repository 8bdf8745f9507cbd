package lock

import (
	"context"
	"errors"
	"sync"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// Lease is a key that is held, for a time. Safe for concurrent use.
type Lease struct {
	locker *Locker
	key    Key
	digest Digest
	token  Token
	ctx    context.Context // ends with the lease
	end    context.CancelCauseFunc

	mu       sync.Mutex
	length   time.Duration
	deadline time.Time // by the monotonic clock of this process, ahead of the store's
	timer    *time.Timer

	calls    sync.Mutex // one request to the store at a time
	reported bool       // that the lease was lost
	doubtful bool       // a release has failed, and may have taken effect
	overran  bool       // the lease was over before the first release
	settled  bool       // the store has answered a release
	result   error      // what that answer was
}

// margin is how much earlier than the store a holder takes its lease for over: clocks differ in speed, and work takes a moment to stop.
func margin(lease time.Duration) time.Duration { return min(lease/20, time.Second) }

// newLease returns the lease that was asked for at sent, false if it is over already.
func newLease(ctx context.Context, a *attempt, sent time.Time) (*Lease, bool) {
	l := &Lease{locker: a.locker, key: a.key, digest: a.digest, token: a.token, length: a.bounds.Lease}
	l.deadline = sent.Add(l.length - margin(l.length))
	left := time.Until(l.deadline)
	if left <= 0 {
		return nil, false
	}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	l.mu.Lock() // the timer's function waits for it
	l.timer = time.AfterFunc(left, l.expire)
	l.mu.Unlock()
	l.locker.metrics.held.Add(ctx, 1)
	return l, true
}

// Key returns what is locked.
func (l *Lease) Key() string { return l.key.Name }

// Done is closed when the lease is released, lost or over. The last is judged by this process's own clock, counted from before the lease was asked
// for and a little early, so that it is closed before anyone else can hold the key. Each call asks the clock, and so knows after a process was starved
// or stopped for a while what a timer will only tell in a moment.
func (l *Lease) Done() <-chan struct{} {
	l.expire()
	return l.ctx.Done()
}

// Context returns a context that ends with the lease, the cause being [ErrLeaseExpired] where it was lost, and in which taking the key again fails
// with [ErrAlreadyHeld]. The caller calls cancel once it needs it no more.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, holdingKey{}, &holding{l, holdingOf(parent)}))
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// Release gives the key back. It works under a ctx that has ended, and gives the store 5 s, and 1 s before that to a renewal under way. [ErrLeaseExpired] means that the lease had passed before;
// whoever holds the key now keeps it. It may be repeated, which changes nothing but after an error of the store's, and returns the same.
func (l *Lease) Release(ctx context.Context) error {
	if _, open := tx.FromContext(ctx); open {
		return ErrInsideTransaction
	}
	ctx = context.WithoutCancel(ctx)
	l.finish(errReleased)
	l.calls.Lock()
	defer l.calls.Unlock()
	if l.settled {
		return l.result
	}
	if !l.doubtful {
		l.overran = !errors.Is(l.over(), errReleased)
	}
	freed, err := call(ctx, 5*answerTimeout, func(ctx context.Context) (Freed, error) { return l.locker.driver.Release(ctx, l.key, l.token) })
	l.locker.lines.ring(l.digest)
	switch {
	case err != nil && l.overran:
		l.doubtful = true
		l.report(ctx)
		return fault.New(fault.LockLeaseLost, "lock.Release", err)
	case err != nil:
		l.doubtful = true
		return fault.Textf("lock.Release: %w", err)
	case freed == Released, freed == Lost && l.doubtful && !l.overran: // the latter by the release whose answer was lost
	default:
		l.report(ctx)
		l.result = fault.New(fault.LockLeaseLost, "lock.Release", nil)
	}
	l.settled = true
	return l.result
}

// expire ends a lease whose time is over. One that was renewed since its timer was set goes on.
func (l *Lease) expire() {
	l.mu.Lock()
	early := time.Now().Before(l.deadline)
	l.mu.Unlock()
	if !early {
		l.finish(ErrLeaseExpired)
	}
}

// finish ends the lease in this process. The first cause stays.
func (l *Lease) finish(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return
	}
	l.timer.Stop()
	l.end(cause)
	l.locker.metrics.held.Add(l.ctx, -1)
}

// over returns why the lease is over, nil while it is not.
func (l *Lease) over() error { return context.Cause(l.ctx) }

// report says, once, that the lease had passed before it was given back. It is called with calls held.
func (l *Lease) report(ctx context.Context) {
	if l.reported {
		return
	}
	l.reported = true
	l.locker.metrics.expired.Add(ctx, 1)
	l.locker.opts.Logger.WarnContext(ctx, "a lock's lease had passed before its holder gave it back; the work may have run beside another's",
		"key", l.key.Display(), "region", l.key.Region)
}
