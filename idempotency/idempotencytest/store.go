package idempotencytest

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx"
)

// Harness makes what the tests of this package test.
type Harness struct {
	// New returns a store that no other check uses: they run in parallel. It cleans up by t.Cleanup.
	New func(t *testing.T) Store
}

// Store keeps the records under test, none at first.
type Store struct {
	Driver idempotency.Driver
	Runner *tx.Runner // begins the transactions that Driver completes in; at least 3 at a time
	// Pass makes the leases, expiries and ages of all records be as if d had gone by. Nothing else changes.
	Pass func(ctx context.Context, d time.Duration) error
}

// Leases and expiries of the checks: no check takes as long, and a step is enough for one, or for all.
const (
	lease  = 10 * time.Minute
	expiry = time.Hour
	day    = 24 * time.Hour
)

// errRollback ends a transaction of a check without a commit.
var errRollback = errors.New("idempotencytest: rolled back on purpose")

// newScope returns one that nobody has used.
func newScope() (s idempotency.Scope) {
	_, _ = rand.Read(s[:]) // it never fails
	return s
}

// request is of another operation each time.
func request(s idempotency.Scope) idempotency.Request {
	return idempotency.Request{
		Scope: s, KeyVersion: "1", Tenant: "ä", Route: "POST /orders/{id}", Fingerprint: idempotency.Fingerprint{1, 0, 0xff}, Owner: "node",
		Operation: rand.Text(), Lease: lease, Expiry: expiry,
	}
}

func inline(payload string) idempotency.Answer { return idempotency.Answer{Payload: []byte(payload)} }

// pass lets time go by.
func (s Store) pass(ctx context.Context, d time.Duration) { suite.Must(s.Pass(ctx, d), "Pass") }

// claims fails unless a new record is made.
func (s Store) claims(ctx context.Context, r idempotency.Request, what string) idempotency.Claim {
	rec, made, err := s.Driver.Claim(ctx, r)
	suite.Must(err, "claim of "+what)
	suite.Equal(true, made, "claim of "+what)
	suite.Equal(idempotency.Record{
		Claim: idempotency.Claim{Scope: r.Scope, Owner: r.Owner, Attempt: 1, Operation: r.Operation, Revision: 1}, State: idempotency.Claimed, Fingerprint: r.Fingerprint,
	}, rec, "claim of "+what)
	return rec.Claim
}

// reads fails unless the scope has a record, which is c's, in that state and with that answer.
func (s Store) reads(ctx context.Context, c idempotency.Claim, state idempotency.State, answer []byte, what string) idempotency.Record {
	rec, made, err := s.Driver.Claim(ctx, request(c.Scope))
	suite.Must(err, "reading "+what)
	suite.Equal(false, made, "a second claim of "+what)
	suite.Equal(c, rec.Claim, what)
	suite.Equal(state, rec.State, "state of "+what)
	suite.Equal(answer, rec.Payload, "answer of "+what)
	return rec
}

// executes fails unless the claim begins to execute.
func (s Store) executes(ctx context.Context, c idempotency.Claim, what string) idempotency.Claim {
	now, err := s.Driver.Execute(ctx, c, lease, nil)
	suite.Must(err, "executing "+what)
	want := c
	want.Revision++
	suite.Equal(want, now, "executing "+what)
	return now
}

// abandoned returns a claim in that state.
func (s Store) abandoned(ctx context.Context) idempotency.Claim {
	c := s.executes(ctx, s.claims(ctx, request(newScope()), "a new key"), "a new claim")
	s.settles(ctx, c, idempotency.Executing, idempotency.Abandoned, idempotency.Answer{}, "an execution")
	c.Revision++
	return c
}

func (s Store) settles(ctx context.Context, c idempotency.Claim, from, to idempotency.State, a idempotency.Answer, what string) {
	suite.Must(s.Driver.Settle(ctx, c, from, to, a), "settling "+what+" as "+string(to))
}

// reconcile settles what was abandoned, as Settle does, in a transaction of its own.
func (s Store) reconcile(ctx context.Context, c idempotency.Claim, _, to idempotency.State, a idempotency.Answer) error {
	return s.Runner.InRootWrite(ctx, func(ctx context.Context, t *tx.Tx) error { return s.Driver.Reconcile(ctx, t, c, to, a) })
}

// transact runs fn in a transaction that ends with result.
func (s Store) transact(ctx context.Context, result error, fn func(ctx context.Context, t *tx.Tx)) {
	err := s.Runner.InRootWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
		fn(ctx, t)
		return result
	})
	if result != nil && errors.Is(err, result) {
		err = nil
	}
	suite.Must(err, "transaction")
}

// completes stores an answer in a transaction of its own.
func (s Store) completes(ctx context.Context, c idempotency.Claim, a idempotency.Answer, what string) {
	s.transact(ctx, nil, func(ctx context.Context, t *tx.Tx) {
		suite.Must(s.Driver.Start(ctx, t, c, nil), "start of "+what)
		suite.Must(s.Driver.Complete(ctx, t, c, a), "completing "+what)
	})
}

// refuses fails unless err is ErrStale.
func refuses(err error, what string) {
	if !errors.Is(err, idempotency.ErrStale) {
		suite.Fail("%s: want ErrStale, got %v", what, err)
	}
}
