package lock

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// Locker takes and gives back the locks of one region. Waiters for one key queue up in it and only the first of them asks the store, so that a
// process has one Locker for a region and store. Safe for concurrent use.
type Locker struct {
	driver  Driver
	opts    Options
	metrics metrics
	lines   lines
}

// New returns a locker whose keys are kept by d.
func New(d Driver, o *Options) (*Locker, error) {
	if d == nil {
		return nil, errors.New("lock: a driver is required; adapter/postgres/pglock and adapter/memory have one")
	}
	l := &Locker{driver: d, lines: lines{byKey: map[Digest]*line{}}}
	if o != nil {
		l.opts = *o
	}
	if err := l.opts.fill(d.MaxLease()); err != nil {
		return nil, err
	}
	var err error
	l.metrics, err = newMetrics(l.opts.Meter)
	return l, err
}

// Acquire takes the lock on key, waiting for it where another holds it. A nil o means the locker's defaults. The error has the code
// LOCK_ACQUISITION_TIMEOUT where the wait has passed, it is ctx's where that ended, [ErrInsideTransaction] or [ErrAlreadyHeld] where the call is
// refused, and otherwise the store's, at once. After an error nothing is held: what the store may have granted is given back.
func (l *Locker) Acquire(ctx context.Context, key string, o *AcquireOptions) (*Lease, error) {
	began := time.Now()
	lease, err := l.acquire(ctx, Key{l.opts.Region, key}, o, began)
	l.metrics.counted(ctx, err, time.Since(began))
	return lease, err
}

func (l *Locker) acquire(ctx context.Context, k Key, o *AcquireOptions, began time.Time) (*Lease, error) {
	if err := canceled(ctx); err != nil {
		return nil, err
	}
	bounds, err := l.bounds(o)
	if err != nil {
		return nil, err
	}
	if _, open := tx.FromContext(ctx); open {
		return nil, ErrInsideTransaction
	}
	a := attempt{locker: l, key: k, digest: k.Digest(), bounds: bounds, deadline: began.Add(bounds.Wait)}
	if l.holds(ctx, a.digest) {
		return nil, ErrAlreadyHeld
	}
	_, _ = rand.Read(a.token[:]) // it never fails
	return a.run(ctx)
}

// Do runs fn while holding the lock on key, and gives it back once fn has ended, even by a panic, and so after whatever transaction fn ran. fn's
// context is [Lease.Context]. Do returns fn's error as it is; what went wrong with giving back is then only logged and counted. Where fn returned nil
// that is what Do returns: [ErrLeaseExpired] where the lease had passed.
func (l *Locker) Do(ctx context.Context, key string, o *AcquireOptions, fn func(ctx context.Context) error) (err error) {
	lease, err := l.Acquire(ctx, key, o)
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		switch failed := lease.Release(ctx); {
		case failed == nil:
		case returned && err == nil:
			err = failed
		default:
			l.opts.Logger.WarnContext(ctx, "a lock could not be given back in order after work that failed", "key", lease.key.Display(), "error", fault.Reason(failed))
		}
	}()
	held, cancel := lease.Context(ctx)
	defer cancel()
	err = fn(held)
	returned = true
	return err
}
