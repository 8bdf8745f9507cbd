package lock

import (
	"context"
	"errors"
	"time"

	"caskeleton.dev/fault"
)

// Renew makes the lease end that long from now, unless ctx has ended. [ErrLeaseExpired] means that it was lost; after any other error it lasts as long
// as before, or as asked for, whichever is shorter.
func (l *Lease) Renew(ctx context.Context, lease time.Duration) error {
	return l.renew(ctx, lease, l.locker.driver.MaxLease())
}

// renew gives the store that long to answer, and no longer than the lease lasts.
func (l *Lease) renew(ctx context.Context, lease, patience time.Duration) error {
	if err := checkLease(lease, l.locker.driver.MaxLease()); err != nil {
		return err
	}
	l.calls.Lock()
	defer l.calls.Unlock()
	if err := l.over(); err != nil {
		return err
	}
	ctx, done := l.Context(ctx) // a release does not wait for what is of no use any more
	defer done()
	if ctx.Err() != nil {
		return fault.Textf("lock.Renew: %w", context.Cause(ctx))
	}
	sent := time.Now()
	fresh := sent.Add(lease - margin(lease))
	l.mu.Lock()
	left := l.deadline.Sub(sent)
	l.mu.Unlock()
	if fresh.Before(sent.Add(left)) { // what fails may have taken effect
		l.extend(lease, fresh)
	}
	renewed, err := call(ctx, min(left, patience), func(ctx context.Context) (bool, error) { return l.locker.driver.Renew(ctx, l.key, l.token, lease) })
	switch {
	case err != nil:
		return fault.Textf("lock.Renew: %w", err)
	case !renewed:
		l.finish(ErrLeaseExpired)
		l.report(ctx)
		return fault.New(fault.LockLeaseLost, "lock.Renew", nil)
	}
	l.extend(lease, fresh)
	return l.over()
}

// KeepAlive renews the lease at each third of it, until ctx ends or the lease is released (nil) or lost ([ErrLeaseExpired]). Renewals that fail are
// tried again while the lease lasts. It is the only watchdog there is: run it beside the work, and let ctx bound how long that may take.
func (l *Lease) KeepAlive(ctx context.Context) error {
	for {
		l.mu.Lock()
		length := l.length
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-l.Done():
			if err := l.over(); !errors.Is(err, errReleased) {
				return err
			}
			return nil
		case <-time.After(length / 3):
		}
		err := l.renew(ctx, length, length/3)
		if err != nil && l.ctx.Err() == nil && ctx.Err() == nil {
			l.locker.opts.Logger.WarnContext(ctx, "a lock's lease could not be renewed; trying again while it lasts", "key", l.key.Display(), "error", fault.Reason(err))
		}
	}
}

// extend sets the local deadline, unless the lease is over.
func (l *Lease) extend(length time.Duration, deadline time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.length, l.deadline = length, deadline
	if l.ctx.Err() == nil {
		l.timer.Reset(time.Until(deadline))
	}
}
