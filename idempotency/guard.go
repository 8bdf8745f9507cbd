package idempotency

import (
	"context"
	"errors"
	"slices"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

const (
	maxLooks      = 5               // how often a record may vanish under a claim before the caller is told to come back
	retryAfter    = time.Second     // what a duplicate is told to wait
	settleTimeout = 5 * time.Second // bound on the last operations on a claim, which the caller's cancellation does not reach
)

// Guard claims keys and stores answers. Safe for concurrent use.
type Guard struct {
	driver  Driver
	runner  *tx.Runner
	keys    Keyring
	opts    Options
	metrics metrics
	lookups *lookups
	invalid error // why a guard of With can do nothing
}

// New returns a guard that stores its records with d, in transactions of r.
func New(d Driver, r *tx.Runner, keys Keyring, o *Options) (*Guard, error) {
	g := &Guard{driver: d, runner: r, keys: keys, lookups: &lookups{byKey: map[Scope]*lookup{}}}
	if o != nil {
		g.opts = *o
	}
	if d == nil || r == nil || keys.secret == nil {
		return nil, errors.New("idempotency: a driver, a runner and a keyring (NewKeyring) are required")
	}
	if err := g.opts.fill(); err != nil {
		return nil, err
	}
	var err error
	g.metrics, err = newMetrics(g.opts.Meter)
	return g, err
}

// Enroll compares the guard's keyring with the key versions that the store has on record, and records those that are new. Call it before
// the first [Do]: under another secret no repeat would be recognised. It returns [ErrOtherSecret], which no retry mends, if the keyring
// lacks a version on record or has another secret for it, and if its current version is new while others are on record: instances that do
// not have that version would run repeats of what is claimed under it, so let all of them accept it first ([Keyring.Accept]). Any other
// error kept it from comparing.
func (g *Guard) Enroll(ctx context.Context) error {
	if err := g.driver.Enroll(ctx, g.keys.version, g.keys.checks()); err != nil {
		return fault.Textf("idempotency: enroll key version %s: %w", g.keys.version, err)
	}
	return nil
}

// Retire removes a key version from the store once there is no record of it any more, so that instances start without it, and reports
// whether it did. Call it when no instance has the version as its current one. Unless also is nil, it is called in the same transaction where
// a version is retired: both take effect, or neither does.
func (g *Guard) Retire(ctx context.Context, version string, also func(ctx context.Context, t *tx.Tx) error) (done bool, err error) {
	err = g.alone(ctx, func(ctx context.Context, t *tx.Tx) error {
		if done, err = g.driver.Retire(ctx, t, version); err != nil || !done || also == nil {
			return err
		}
		return also(ctx, t)
	})
	return done && err == nil, err
}

// alone runs fn in a transaction that is not a part of any other. If its COMMIT gets no answer, what became of it is looked up.
func (g *Guard) alone(ctx context.Context, fn func(ctx context.Context, t *tx.Tx) error) error {
	return g.runner.With(tx.Options{Witness: true}).InRootWrite(ctx, fn)
}

// turn is a claim that was made for one operation.
type turn struct {
	Claim
	others []Scope // what the same key is claimed as by those who have another current version
}

// claim makes the record of an operation ours, or says what stands there. The answered record is returned with a zero turn.
func (g *Guard) claim(ctx context.Context, key Key, fp Fingerprint, form string) (turn, *Record, error) {
	if g.invalid != nil {
		return turn{}, nil, g.invalid
	}
	if err := key.Validate(); err != nil {
		return turn{}, nil, err
	}
	scopes := g.keys.scopes(key)
	req := Request{
		Scope: scopes[0], Former: scopes[1:], KeyVersion: g.keys.version, Tenant: key.Tenant, Route: key.Method + " " + key.Route, Fingerprint: fp,
		Owner: g.opts.Owner, Operation: newOperation(form), Lease: g.opts.Lease, Expiry: g.opts.Expiry,
	}
	rec, ours, err := g.lookUp(ctx, req)
	outcome := outcomeError
	switch {
	case err != nil:
	case !ours:
		outcome, err = rec.verdict(fp)
	case rec.Attempt > 1:
		outcome = outcomeTakenOver
	default:
		outcome = outcomeClaimed
	}
	g.metrics.claimed(ctx, outcome)
	switch {
	case err != nil:
		return turn{}, nil, err
	case !ours:
		return turn{}, &rec, nil
	}
	return turn{rec.Claim, slices.DeleteFunc(scopes, func(s Scope) bool { return s == rec.Scope })}, nil, nil
}

func errInProgress(cause error) error {
	return &fault.Error{Code: fault.IdempotencyInProgress, Op: "idempotency.Do", Err: cause, After: retryAfter}
}

// detached runs what ends an operation although the caller may be gone.
func (g *Guard) detached(ctx context.Context, op func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	return op(ctx)
}

// forget gives back a claim that may have been made although its statement failed: the caller left, or the answer was lost. The
// operation is unique to this call, so nobody else's claim is meant. What is retryable is known to have had no effect.
func (g *Guard) forget(ctx context.Context, err error, c Claim) {
	if !fault.Retryable(err) {
		g.release(ctx, c)
	}
}

// release gives a claim back. That it could not is no more than a delay for the next one, until the lease expires.
func (g *Guard) release(ctx context.Context, c Claim) {
	err := g.detached(ctx, func(ctx context.Context) error { return g.driver.Settle(ctx, c, Claimed, released, Answer{}) })
	if err != nil && !errors.Is(err, ErrStale) {
		g.opts.Logger.WarnContext(ctx, "idempotency claim not released; it expires with its lease", "error", fault.Reason(err))
	}
}
