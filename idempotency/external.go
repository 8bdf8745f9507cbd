package idempotency

import (
	"context"
	"errors"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
)

// settlePause is between two tries to store what an external operation has done.
const settlePause = 100 * time.Millisecond

// Execution is an operation that runs outside of any transaction. Safe for concurrent use.
type Execution struct {
	guard *Guard
	claim Claim
}

// Key identifies the operation: 64 hexadecimal digits, the same in each run of it. Send it as the idempotency key of what fn calls, and
// look up by it there what an interrupted run has done.
func (e *Execution) Key() string { return e.claim.Scope.String() }

// Renew has the lease end after the given time from now; 0 means the guard's lease. It returns [ErrStale] where the lease had expired and
// the record is ABANDONED: whatever fn does from then on has to be found out by whoever settles the record.
func (e *Execution) Renew(ctx context.Context, lease time.Duration) error {
	o := e.guard.opts
	if lease != 0 {
		o.Lease, o.Expiry = lease, 0
	}
	if err := o.bounds(); err != nil {
		return err
	}
	return e.guard.driver.Renew(ctx, e.claim, o.Lease)
}

// DoExternal runs fn once for key, for effects outside of the database, and returns its value; a repeat gets the value that was stored. No
// transaction is held while fn runs: its record is committed as EXECUTING before, and with the answer after. With a transaction active it
// returns [tx.ErrNestedRoot].
//
// Where fn returns a value it is stored, as by [Do]; [ErrRejected] makes it a refusal. [ErrNoEffect] gives the key back. After any other
// error, a panic, or an answer that cannot be stored, nobody knows what fn did: the record becomes ABANDONED, as it does once the lease of
// an owner that died has expired, and fn is never run again by itself. [Guard.Reconcile] settles it.
//
// Codes: those of [Do]. IDEMPOTENCY_ABANDONED is also returned where the lease expired and the record was abandoned while fn ran, and where
// the answer could not be stored.
func DoExternal[T any](ctx context.Context, g *Guard, key Key, fp Fingerprint, fn func(ctx context.Context, e *Execution) (T, error)) (Outcome[T], error) {
	own, out, done, err := begin[T](ctx, g, "idempotency.DoExternal", key, fp)
	if done || err != nil {
		return out, err
	}
	c, err := g.execute(ctx, own)
	if err != nil {
		return Outcome[T]{}, err
	}

	settled := false
	defer func() {
		if !settled { // fn panicked, or ended its goroutine
			g.abandon(ctx, c)
		}
	}()
	v, err := fn(ctx, &Execution{g, c})
	settled = true
	switch {
	case err == nil:
		return Outcome[T]{Value: v}, finish(ctx, g, c, Completed, v)
	case errors.Is(err, ErrRejected):
		return Outcome[T]{Value: v, Rejected: true}, finish(ctx, g, c, Failed, v)
	case errors.Is(err, ErrNoEffect):
		g.giveBack(ctx, c)
	default:
		g.abandon(ctx, c)
	}
	return Outcome[T]{}, err
}

// execute makes the record EXECUTING.
func (g *Guard) execute(ctx context.Context, own turn) (Claim, error) {
	c, err := g.driver.Execute(ctx, own.Claim, g.opts.Lease, own.others)
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, ErrStale):
		return Claim{}, errInProgress(err)
	case errors.Is(err, ErrRival):
		g.release(ctx, own.Claim)
		return Claim{}, errInProgress(err)
	}
	g.release(ctx, own.Claim)
	if !fault.Retryable(err) { // it may be EXECUTING, although fn has not begun
		c = own.Claim
		c.Revision++
		g.giveBack(ctx, c)
	}
	return Claim{}, err
}

// finish stores the answer of an external operation. Where it cannot, what was done is for others to find out.
func finish[T any](ctx context.Context, g *Guard, c Claim, to State, v T) error {
	err := g.detached(ctx, func(ctx context.Context) error {
		a, err := answer(ctx, g, c, v)
		if err != nil {
			g.abandon(ctx, c)
			return err
		}
		return g.settle(ctx, c, to, a)
	})
	if err != nil {
		return &fault.Error{Code: fault.IdempotencyAbandoned, Op: "idempotency.DoExternal", Err: err}
	}
	return nil
}

// settle is patient: what it does not store, somebody has to find out. A try whose answer was lost may have succeeded.
func (g *Guard) settle(ctx context.Context, c Claim, to State, a Answer) error {
	for tried := false; ; tried = true {
		err := g.driver.Settle(ctx, c, Executing, to, a)
		if errors.Is(err, ErrStale) && tried {
			if e, found, err := g.driver.Find(ctx, []Scope{c.Scope}); err == nil && found && e.State == to && e.Operation == c.Operation && e.Revision == c.Revision+1 {
				return nil
			}
		}
		if err == nil || errors.Is(err, ErrStale) {
			return err
		}
		if backoff.Wait(ctx, settlePause) != nil {
			return err
		}
	}
}

// abandon leaves an operation to whoever settles it. That it could not is a delay until the lease expires.
func (g *Guard) abandon(ctx context.Context, c Claim) {
	err := g.detached(ctx, func(ctx context.Context) error { return g.driver.Settle(ctx, c, Executing, Abandoned, Answer{}) })
	switch {
	case err == nil:
		g.metrics.abandoned.Add(ctx, 1)
		g.opts.Logger.WarnContext(ctx, "nobody knows what an operation has done; its record is abandoned until it is settled", "scope", c.Scope.String())
	case !errors.Is(err, ErrStale):
		g.opts.Logger.WarnContext(ctx, "idempotency record not abandoned; it is once its lease expires", "error", fault.Reason(err))
	}
}

// giveBack ends an operation that had no effect. An EXECUTING record is never deleted: it is abandoned and settled, which leaves it to others
// where the second step fails.
func (g *Guard) giveBack(ctx context.Context, c Claim) {
	err := g.detached(ctx, func(ctx context.Context) error {
		if err := g.driver.Settle(ctx, c, Executing, Abandoned, Answer{}); err != nil {
			return err
		}
		c.Revision++
		return g.driver.Settle(ctx, c, Abandoned, released, Answer{})
	})
	if err != nil && !errors.Is(err, ErrStale) {
		g.opts.Logger.WarnContext(ctx, "idempotency record of an operation without effect not released; it has to be settled", "error", fault.Reason(err))
	}
}
