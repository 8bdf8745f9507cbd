package idempotency

import (
	"context"
	"errors"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// Outcome is the answer of an operation.
type Outcome[T any] struct {
	Value    T
	Replayed bool // from the store: the operation did not run this time
	Rejected bool // the operation returned [ErrRejected], now or the first time: the value stands for a refusal, and nothing took effect
}

// Do runs fn once for key, in a transaction, and returns its value; a repeat gets the value that was stored. fn must do nothing outside the
// transaction that a second run could double. Do begins the transaction itself: with one active it returns [tx.ErrNestedRoot].
//
// A value is stored as its MarshalBinary returns it if T or *T has both MarshalBinary and UnmarshalBinary, and as JSON if it has neither. A
// T with only one of them, or an interface type, is an error before anything is looked up. Where fn fails nothing is stored and the next
// call runs fn again; see [ErrRejected] for an answer that is a refusal.
//
// Codes: IDEMPOTENCY_KEY_REQUIRED and IDEMPOTENCY_KEY_INVALID (nothing was looked up), IDEMPOTENCY_KEY_REUSED (fp differs from the first
// one's), IDEMPOTENCY_IN_PROGRESS with a time to wait, IDEMPOTENCY_ABANDONED, those of the transaction and of fn. After DB_COMMIT_UNKNOWN,
// which also has a time to wait, the same key may be sent again: it is answered, or run if nothing was committed.
func Do[T any](ctx context.Context, g *Guard, key Key, fp Fingerprint, fn func(ctx context.Context, t *tx.Tx) (T, error)) (Outcome[T], error) {
	own, out, done, err := begin[T](ctx, g, "idempotency.Do", key, fp)
	if done || err != nil {
		return out, err
	}
	settled := false
	defer func() {
		if !settled { // fn panicked, or ended its goroutine
			g.release(ctx, own.Claim)
		}
	}()
	out, lost, err := run(ctx, g, own, fn)
	settled = true
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, fault.DBCommitUnknown):
		// The claim stays: releasing it could let a repeat run beside a transaction that is still committing.
		return Outcome[T]{}, &fault.Error{Code: fault.DBCommitUnknown, Op: "idempotency.Do", Err: err, After: retryAfter}
	case errors.Is(err, ErrRejected):
		return reject(ctx, g, own.Claim, out)
	case errors.Is(lost, ErrStale):
		return Outcome[T]{}, errInProgress(err)
	case errors.Is(lost, ErrRival):
		g.release(ctx, own.Claim)
		return Outcome[T]{}, errInProgress(err)
	}
	g.release(ctx, own.Claim)
	return Outcome[T]{}, err
}

// begin claims key for an operation that returns a T. A repeat is done: out is what was stored.
func begin[T any](ctx context.Context, g *Guard, op string, key Key, fp Fingerprint) (own turn, out Outcome[T], done bool, err error) {
	if g.runner.Active(ctx) {
		return own, out, false, fault.New(fault.TXNestedRoot, op, errNested)
	}
	form, err := formOf[T]()
	if err != nil {
		return own, out, false, err
	}
	own, rec, err := g.claim(ctx, key, fp, form)
	if err != nil || rec == nil {
		return own, out, false, err
	}
	payload, err := g.load(ctx, rec.Answer)
	if err != nil {
		return own, out, false, err
	}
	v, err := decode[T](payload)
	return own, Outcome[T]{v, true, rec.State == Failed}, true, err
}

// run executes fn between Start and Complete. The outcome is meaningful where the error is nil or ErrRejected; lost is what the driver, and not
// fn, says of the claim.
func run[T any](ctx context.Context, g *Guard, own turn, fn func(ctx context.Context, t *tx.Tx) (T, error)) (out Outcome[T], lost, err error) {
	err = g.runner.InRootWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
		if lost = g.driver.Start(ctx, t, own.Claim, own.others); lost != nil {
			return lost
		}
		v, err := fn(ctx, t)
		out.Value = v
		if err != nil {
			return err
		}
		a, err := answer(ctx, g, own.Claim, v)
		if err != nil {
			return err
		}
		lost = g.driver.Complete(ctx, t, own.Claim, a)
		return lost
	})
	return out, lost, err
}

// reject stores a refusal, now that the transaction is rolled back. A refusal that could not be stored is not given either: a repeat
// might be told something else.
func reject[T any](ctx context.Context, g *Guard, c Claim, out Outcome[T]) (Outcome[T], error) {
	err := g.detached(ctx, func(ctx context.Context) error {
		a, err := answer(ctx, g, c, out.Value)
		if err != nil {
			g.release(ctx, c)
			return err
		}
		return g.driver.Settle(ctx, c, Claimed, Failed, a)
	})
	switch {
	case errors.Is(err, ErrStale):
		return Outcome[T]{}, errInProgress(err)
	case err != nil:
		return Outcome[T]{}, err
	}
	out.Rejected = true
	return out, nil
}
