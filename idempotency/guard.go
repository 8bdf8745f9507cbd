package idempotency

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

const (
	maxLooks       = 5               // how often a record may vanish under a claim before the caller is told to come back
	retryAfter     = time.Second     // what a duplicate is told to wait
	settleTimeout  = 5 * time.Second // bound on releasing or failing a claim, which the caller's cancellation does not reach
	defaultLease   = 30 * time.Second
	defaultExpiry  = 24 * time.Hour
	defaultInline  = 8 << 10
	ownerNameBytes = 64
)

// MaxInlineLimit is the largest [Options.InlineLimit], in bytes.
const MaxInlineLimit = 1 << 20

// Options configure a [Guard]. The zero value is the default.
type Options struct {
	Lease       time.Duration // until the claim of an owner that died may be taken over; 0 means 30 s
	Expiry      time.Duration // how long an answer is kept at least, counted from the claim; 0 means 24 h
	InlineLimit int           // size of the largest answer in bytes, as stored; at most MaxInlineLimit; 0 means 8 KiB
	Owner       string        // names this process in the records; "" means a random name
	Meter       metric.MeterProvider
	Logger      *slog.Logger
}

// Guard claims keys and stores answers. Safe for concurrent use.
type Guard struct {
	driver  Driver
	runner  *tx.Runner
	keys    Keyring
	opts    Options
	metrics metrics
}

// New returns a guard that stores its records with d, in transactions of r.
func New(d Driver, r *tx.Runner, keys Keyring, o *Options) (*Guard, error) {
	g := &Guard{driver: d, runner: r, keys: keys}
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

// fill sets defaults and refuses what cannot work.
func (o *Options) fill() error {
	switch {
	case o.Lease < 0 || o.Lease > 0 && o.Lease < time.Millisecond:
		return fmt.Errorf("idempotency: Lease is %v; it must be 1 ms or more, or 0 for %v", o.Lease, defaultLease)
	case o.Expiry < 0:
		return fmt.Errorf("idempotency: Expiry is %v; it must be positive, or 0 for %v", o.Expiry, defaultExpiry)
	case o.InlineLimit < 0 || o.InlineLimit > MaxInlineLimit:
		return fmt.Errorf("idempotency: InlineLimit is %d; use 1 to %d bytes, or 0 for %d", o.InlineLimit, MaxInlineLimit, defaultInline)
	case len(o.Owner) > ownerNameBytes:
		return fmt.Errorf("idempotency: Owner has %d bytes; at most %d are stored", len(o.Owner), ownerNameBytes)
	}
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.Expiry == 0 {
		o.Expiry = defaultExpiry
	}
	if o.Expiry < o.Lease {
		return fmt.Errorf("idempotency: Expiry is %v, shorter than Lease, %v", o.Expiry, o.Lease)
	}
	if o.InlineLimit == 0 {
		o.InlineLimit = defaultInline
	}
	if o.Owner == "" {
		o.Owner = rand.Text()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

// Enroll makes sure that the guard's secret is the one that the store knows, and makes it known to an empty one. Call it before the first
// [Do]: under another secret no repeat is recognised. It returns [ErrOtherSecret], which no retry mends, or what kept it from asking.
func (g *Guard) Enroll(ctx context.Context) error {
	if err := g.driver.Enroll(ctx, g.keys.version, g.keys.check()); err != nil {
		return fmt.Errorf("idempotency: enroll key version %s: %w", g.keys.version, err)
	}
	return nil
}

// claim makes the record of an operation ours, or says what stands there. The answered record is returned with a zero Claim.
func (g *Guard) claim(ctx context.Context, key Key, fp Fingerprint) (Claim, *Record, error) {
	if err := key.validate(); err != nil {
		return Claim{}, nil, err
	}
	req := Request{
		Scope: g.keys.scope(key), KeyVersion: g.keys.version, Tenant: key.Tenant, Route: key.Method + " " + key.Route, Fingerprint: fp,
		Owner: g.opts.Owner, Operation: rand.Text(), Lease: g.opts.Lease, Expiry: g.opts.Expiry,
	}
	claim, rec, outcome, err := g.look(ctx, req)
	g.metrics.claimed(ctx, outcome)
	return claim, rec, err
}

func (g *Guard) look(ctx context.Context, req Request) (Claim, *Record, string, error) {
	for range maxLooks {
		rec, made, err := g.driver.Claim(ctx, req)
		switch {
		case err != nil:
			g.forget(ctx, err, Claim{Scope: req.Scope, Owner: req.Owner, Attempt: 1, Operation: req.Operation, Revision: 1})
			return Claim{}, nil, outcomeError, err
		case made:
			return rec.Claim, nil, outcomeClaimed, nil
		case rec.State == "":
			continue // it vanished between the statements: released or reaped
		case rec.Fingerprint != req.Fingerprint:
			return Claim{}, nil, outcomeReused, fault.New(fault.IdempotencyKeyReused, "idempotency.Do", nil)
		case rec.State == Completed || rec.State == Failed:
			return Claim{}, &rec, outcomeReplayed, nil
		case rec.State == Abandoned, rec.State == Executing && rec.LeaseExpired:
			return Claim{}, nil, outcomeAbandoned, fault.New(fault.IdempotencyAbandoned, "idempotency.Do", nil)
		case rec.State == Executing || !rec.LeaseExpired:
			return Claim{}, nil, outcomeInProgress, errInProgress()
		}
		claim, taken, err := g.driver.TakeOver(ctx, rec.Claim, req)
		switch {
		case err != nil:
			g.forget(ctx, err, Claim{Scope: req.Scope, Owner: req.Owner, Attempt: rec.Attempt + 1, Operation: req.Operation, Revision: rec.Revision + 1})
			return Claim{}, nil, outcomeError, err
		case taken:
			return claim, nil, outcomeTakenOver, nil
		}
		return Claim{}, nil, outcomeInProgress, errInProgress()
	}
	return Claim{}, nil, outcomeInProgress, errInProgress()
}

func errInProgress() error {
	return &fault.Error{Code: fault.IdempotencyInProgress, Op: "idempotency.Do", After: retryAfter}
}

// settle runs the last operation on a claim, although the caller may be gone.
func (g *Guard) settle(ctx context.Context, op func(ctx context.Context) error) error {
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
	err := g.settle(ctx, func(ctx context.Context) error { return g.driver.Release(ctx, c) })
	if err != nil && !errors.Is(err, ErrStale) {
		g.opts.Logger.WarnContext(ctx, "idempotency claim not released; it expires with its lease", "error", err)
	}
}
