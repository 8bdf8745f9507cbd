package idempotencytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx"
)

func once(ctx context.Context, s Store) {
	c := s.claims(ctx, request(newScope()), "a new key")
	for range 2 {
		rec := s.reads(ctx, c, idempotency.Claimed, nil, "a claimed key")
		suite.Equal(request(c.Scope).Fingerprint, rec.Fingerprint, "fingerprint of a claimed key")
		suite.Equal(false, rec.LeaseExpired, "lease of a claimed key")
	}
	s.claims(ctx, request(newScope()), "another key")
	s.settles(ctx, c, idempotency.Claimed, "", idempotency.Answer{}, "a claim")
	s.claims(ctx, request(c.Scope), "a released key")

	for range 5 { // at once
		r, made, all := request(newScope()), atomic.Int32{}, sync.WaitGroup{}
		errs := make([]error, 6)
		for i := range errs {
			all.Go(func() {
				mine := r
				mine.Operation += fmt.Sprint(i)
				var first bool
				if _, first, errs[i] = s.Driver.Claim(ctx, mine); first {
					made.Add(1)
				}
			})
		}
		all.Wait()
		suite.Must(errors.Join(errs...), "claims at once")
		suite.Equal(1, made.Load(), "claims that were made at once")
	}
}

func commits(ctx context.Context, s Store) {
	c := s.claims(ctx, request(newScope()), "a new key")
	for _, result := range []error{errRollback, nil} {
		s.transact(ctx, result, func(in context.Context, t *tx.Tx) {
			suite.Must(s.Driver.Start(in, t, c, nil), "start")
			suite.Must(s.Driver.Complete(in, t, c, inline("answer")), "complete")
			s.reads(ctx, c, idempotency.Claimed, nil, "a key whose transaction is open")
			refuses(s.Driver.Complete(in, t, c, inline("again")), "completing twice")
		})
		if result != nil {
			s.reads(ctx, c, idempotency.Claimed, nil, "a key whose transaction was rolled back")
		}
	}
	done := c
	done.Revision++
	s.reads(ctx, done, idempotency.Completed, []byte("answer"), "a key whose transaction has committed")
}

// answers are stored by each way to store one.
func answers(ctx context.Context, s Store) {
	for name, payload := range map[string]string{
		"no bytes": "", "any bytes": "\x00\xff'\\", "many bytes": strings.Repeat("\x00large", 200_000),
	} {
		for _, a := range []idempotency.Answer{inline(payload), {Payload: []byte(payload), Large: true}} {
			for _, from := range []idempotency.State{"", idempotency.Claimed, idempotency.Executing, idempotency.Abandoned} {
				c, to := s.in(ctx, from), idempotency.Completed
				switch from {
				case "":
					s.completes(ctx, c, a, name)
				case idempotency.Claimed:
					to = idempotency.Failed
					s.settles(ctx, c, from, to, a, name)
				default:
					s.settles(ctx, c, from, to, a, name)
				}
				c.Revision++
				s.reads(ctx, c, to, []byte(payload), name)
			}
		}
	}
	c := s.in(ctx, idempotency.Executing)
	ref := idempotency.Ref(c.Scope.String() + "/" + c.Operation + "/x")
	s.settles(ctx, c, idempotency.Executing, idempotency.Completed, idempotency.Answer{Ref: ref}, "a ref")
	c.Revision++
	suite.Equal(ref, s.reads(ctx, c, idempotency.Completed, nil, "a ref").Ref, "a ref")
	c = s.claims(ctx, request(newScope()), "a new key")
	s.completes(ctx, c, idempotency.Answer{Ref: ref}, "a ref")
	c.Revision++
	suite.Equal(ref, s.reads(ctx, c, idempotency.Completed, nil, "a ref").Ref, "a ref")
}

// in returns the claim of a new key that is in that state; "" is CLAIMED too.
func (s Store) in(ctx context.Context, state idempotency.State) idempotency.Claim {
	switch state {
	case idempotency.Executing:
		return s.executes(ctx, s.claims(ctx, request(newScope()), "a new key"), "a new claim")
	case idempotency.Abandoned:
		return s.abandoned(ctx)
	case idempotency.Completed, idempotency.Failed:
		c := s.in(ctx, idempotency.Executing)
		s.settles(ctx, c, idempotency.Executing, state, inline("kept"), "an execution")
		c.Revision++
		return c
	}
	return s.claims(ctx, request(newScope()), "a new key")
}

// operations are all that an owner can do with a claim, by name.
func (s Store) operations(ctx context.Context, c idempotency.Claim) map[string]func() error {
	do := map[string]func() error{
		"Execute": func() error { _, err := s.Driver.Execute(ctx, c, lease, nil); return err },
		"Renew":   func() error { return s.Driver.Renew(ctx, c, lease) },
	}
	for name, in := range map[string]func(ctx context.Context, t *tx.Tx) error{
		"Start":    func(ctx context.Context, t *tx.Tx) error { return s.Driver.Start(ctx, t, c, nil) },
		"Complete": func(ctx context.Context, t *tx.Tx) error { return s.Driver.Complete(ctx, t, c, inline("stolen")) },
	} {
		do[name] = func() error { return s.Runner.InRootWrite(ctx, in) }
	}
	for _, from := range []idempotency.State{idempotency.Claimed, idempotency.Executing, idempotency.Abandoned} {
		for to, a := range map[idempotency.State]idempotency.Answer{
			"": {}, idempotency.Completed: inline("stolen"), idempotency.Failed: {Payload: []byte("stolen"), Large: true},
		} {
			do["Settle "+string(from)+" as "+string(to)] = func() error { return s.Driver.Settle(ctx, c, from, to, a) }
			do["Reconcile as "+string(to)] = func() error { return s.reconcile(ctx, c, from, to, a) }
		}
	}
	return do
}

// stale takes each part of a claim away in turn.
func stale(ctx context.Context, s Store) {
	for _, state := range []idempotency.State{idempotency.Claimed, idempotency.Executing, idempotency.Abandoned} {
		c := s.in(ctx, state)
		s.pass(ctx, lease)
		for part, spoil := range map[string]func(*idempotency.Claim){
			"scope":     func(c *idempotency.Claim) { c.Scope[31]++ },
			"owner":     func(c *idempotency.Claim) { c.Owner = "another" },
			"attempt":   func(c *idempotency.Claim) { c.Attempt++ },
			"operation": func(c *idempotency.Claim) { c.Operation += "x" },
			"revision":  func(c *idempotency.Claim) { c.Revision++ },
		} {
			lost := c
			spoil(&lost)
			for name, do := range s.operations(ctx, lost) {
				refuses(do(), name+" with another "+part)
			}
			_, taken, err := s.Driver.TakeOver(ctx, lost, request(c.Scope))
			suite.Must(err, "taking over")
			suite.Equal(false, taken, "taking over with another "+part)
			marked, err := s.Driver.Abandon(ctx, lost)
			suite.Must(err, "abandoning")
			suite.Equal(false, marked, "abandoning with another "+part)
			s.reads(ctx, c, state, nil, "a key that stale owners tried for")
		}
	}
}

// states does with a claim what does not fit its state.
func states(ctx context.Context, s Store) {
	fits := map[idempotency.State][]string{
		idempotency.Claimed:   {"Start", "Complete", "Execute", "Settle CLAIMED"},
		idempotency.Executing: {"Renew", "Settle EXECUTING"},
		idempotency.Abandoned: {"Settle ABANDONED", "Reconcile"},
		idempotency.Completed: nil,
		idempotency.Failed:    nil,
	}
	for state, can := range fits {
		var kept []byte
		c := s.in(ctx, state)
		if state == idempotency.Completed || state == idempotency.Failed {
			kept = []byte("kept")
		}
		for name, do := range s.operations(ctx, c) {
			if slices.ContainsFunc(can, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				continue
			}
			refuses(do(), name+" of a record that is "+string(state))
			s.reads(ctx, c, state, kept, "a record that is "+string(state))
		}
		s.pass(ctx, lease)
		if state != idempotency.Claimed {
			_, taken, err := s.Driver.TakeOver(ctx, c, request(c.Scope))
			suite.Must(err, "taking over")
			suite.Equal(false, taken, "taking over a record that is "+string(state))
		}
		if state != idempotency.Executing {
			marked, err := s.Driver.Abandon(ctx, c)
			suite.Must(err, "abandoning")
			suite.Equal(false, marked, "abandoning a record that is "+string(state))
		}
		s.reads(ctx, c, state, kept, "a record that is "+string(state))
	}
}

func takeOvers(ctx context.Context, s Store) {
	c := s.claims(ctx, request(newScope()), "a new key")
	r := request(c.Scope)
	r.Owner = "another"
	_, taken, err := s.Driver.TakeOver(ctx, c, r)
	suite.Must(err, "taking over")
	suite.Equal(false, taken, "taking over before the lease has expired")

	s.pass(ctx, lease)
	suite.Equal(true, s.reads(ctx, c, idempotency.Claimed, nil, "an expired claim").LeaseExpired, "lease of an expired claim")
	now, taken, err := s.Driver.TakeOver(ctx, c, r)
	suite.Must(err, "taking over")
	suite.Equal(true, taken, "taking over an expired claim")
	suite.Equal(idempotency.Claim{Scope: c.Scope, Owner: "another", Attempt: 2, Operation: r.Operation, Revision: 2}, now, "a claim that was taken over")
	suite.Equal(false, s.reads(ctx, now, idempotency.Claimed, nil, "a claim that was taken over").LeaseExpired, "lease of a claim that was taken over")
	for name, do := range s.operations(ctx, c) {
		refuses(do(), name+" by the former owner")
	}
	s.pass(ctx, expiry-lease) // more than the expiry since the first claim
	n, _, err := s.Driver.Reap(ctx, 0, idempotency.Cursor{}, 10)
	suite.Must(err, "reaping")
	suite.Equal(0, n, "records reaped: a claim that was taken over has an expiry of its own")
	s.completes(ctx, now, inline("done"), "a claim that was taken over")
}

// running asks while a transaction holds a record whose lease has expired.
func running(ctx context.Context, s Store) {
	c := s.claims(ctx, request(newScope()), "a new key")
	s.pass(ctx, day)
	for _, completed := range []bool{false, true} {
		s.transact(ctx, errRollback, func(in context.Context, t *tx.Tx) {
			suite.Must(s.Driver.Start(in, t, c, nil), "start")
			if completed {
				suite.Must(s.Driver.Complete(in, t, c, inline("done")), "complete")
			}
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			suite.Equal(true, s.reads(ctx, c, idempotency.Claimed, nil, "a key whose transaction is open").LeaseExpired, "lease of a key whose transaction is open")
			_, taken, err := s.Driver.TakeOver(ctx, c, request(c.Scope))
			suite.Must(err, "taking over from a transaction that is open")
			suite.Equal(false, taken, "taking over from a transaction that is open")
			n, _, err := s.Driver.Reap(ctx, 0, idempotency.Cursor{}, 10)
			suite.Must(err, "reaping beside a transaction that is open")
			suite.Equal(0, n, "records reaped beside a transaction that is open")
			suite.Equal(0, s.expires(ctx, 10), "records found interrupted beside a transaction that is open")
		})
	}
	s.completes(ctx, c, inline("done"), "a claim whose lease has expired")
	c = s.claims(ctx, request(newScope()), "a new key")
	s.pass(ctx, lease)
	s.completes(ctx, c, idempotency.Answer{Payload: []byte("done"), Large: true}, "a claim whose lease has expired, with a large answer")
}
