package lock

import (
	"context"
	"errors"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
)

// attempt is one Acquire.
type attempt struct {
	locker   *Locker
	key      Key
	digest   Digest
	token    Token
	bounds   AcquireOptions
	deadline time.Time // of the wait
	held     bool      // by another, as the store's last answer said
}

// run waits until it is the head of the key's line, and then for the key.
func (a *attempt) run(ctx context.Context) (*Lease, error) {
	if a.bounds.Wait == 0 { // it does not wait, so it does not queue either
		lease, _, err := a.try(ctx)
		if lease == nil && err == nil {
			err = timedOut(a.key)
		}
		return lease, err
	}
	p := a.locker.lines.enter(a.digest)
	defer p.leave()
	if p.head != nil {
		a.held = true
		t := time.NewTimer(time.Until(a.deadline))
		defer t.Stop()
		select {
		case <-p.head:
		case <-ctx.Done():
			return nil, canceled(ctx)
		case <-t.C:
			return nil, timedOut(a.key)
		}
	}
	for {
		lease, holder, err := a.try(ctx)
		if lease != nil || err != nil {
			return lease, err
		}
		if err := a.watch(ctx, p.line.bell, holder); err != nil {
			return nil, err
		}
	}
}

// try asks the store for the key once. It returns a lease, or who holds the key.
func (a *attempt) try(ctx context.Context) (*Lease, Holder, error) {
	if err := canceled(ctx); err != nil {
		return nil, Holder{}, err
	}
	sent := time.Now()
	h, err := call(ctx, a.patience(), func(ctx context.Context) (h Holder, err error) {
		h, err = a.locker.driver.Acquire(ctx, a.key, a.token, a.bounds.Lease, a.bounds.Wait > 0)
		a.held = a.held || collided(err) // should the next try be cut off by the end of the wait
		return h, err
	})
	switch {
	case err == nil && h.Held:
		a.held = true
		return nil, h, nil
	case collided(err):
		return nil, Holder{Held: true, Contended: true}, nil
	case err == nil && ctx.Err() == nil:
		lease, ok := newLease(ctx, a, sent)
		if ok {
			return lease, Holder{}, nil
		}
		err = fault.Text("the store's answer took longer than the lease it granted")
	}
	a.giveBack(ctx)
	return nil, Holder{}, a.failed(ctx, err)
}

// watch returns nil once the key may be free. It asks the store now and then, without writing, for what nobody rings for.
func (a *attempt) watch(ctx context.Context, bell <-chan struct{}, h Holder) error {
	poll := max(1, min(a.locker.opts.Poll, a.bounds.Wait/2)) // a wait shorter than a poll is to look too
	marked := h.Contended                                    // otherwise the store marks nothing
	for {
		left := time.Until(a.deadline)
		if left <= 0 {
			return timedOut(a.key)
		}
		pause := min(left, backoff.Jitter(poll, 2))
		if h.Left > 0 {
			pause = min(pause, h.Left)
		}
		select {
		case <-ctx.Done():
			return canceled(ctx)
		case <-bell:
			return nil
		case <-time.After(pause):
		}
		if pause == left {
			continue
		}
		looked, err := call(ctx, a.patience(), func(ctx context.Context) (Holder, error) { return a.locker.driver.Look(ctx, a.key) })
		switch {
		case collided(err):
			continue
		case err != nil:
			return a.failed(ctx, err)
		case !looked.Held, marked && !looked.Contended: // in the latter case a new holder is to be told of who waits
			return nil
		}
		h = looked
	}
}

// patience is how long the store may take to answer.
func (a *attempt) patience() time.Duration { return max(time.Until(a.deadline), answerTimeout) }

// failed returns what a request that failed ends the attempt with.
func (a *attempt) failed(ctx context.Context, err error) error {
	if err := canceled(ctx); err != nil {
		return err
	}
	if a.held && errors.Is(err, context.DeadlineExceeded) && !time.Now().Before(a.deadline) {
		return timedOut(a.key)
	}
	return fault.Textf("lock.Acquire: %w", err)
}

// giveBack releases what a request with an unknown outcome may have got.
func (a *attempt) giveBack(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	_, err := call(ctx, answerTimeout, func(ctx context.Context) (Freed, error) { return a.locker.driver.Release(ctx, a.key, a.token) })
	if err != nil {
		a.locker.opts.Logger.WarnContext(ctx, "a lock that may have been granted could not be given back; its lease will end it",
			"key", a.key.Display(), "lease", a.bounds.Lease, "error", fault.Reason(err))
	}
}
