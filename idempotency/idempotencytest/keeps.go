package idempotencytest

import (
	"context"
	"errors"
	"slices"
	"time"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx"
)

func (s Store) expires(ctx context.Context, limit int) int {
	n, err := s.Driver.Expire(ctx, limit)
	suite.Must(err, "expiring")
	return n
}

func abandons(ctx context.Context, s Store) {
	c := s.in(ctx, idempotency.Executing)
	early := func(what string) {
		marked, err := s.Driver.Abandon(ctx, c)
		suite.Must(err, "abandoning "+what)
		suite.Equal(false, marked, "abandoning "+what)
		suite.Equal(0, s.expires(ctx, 10), "records found interrupted: "+what)
		suite.Equal(false, s.reads(ctx, c, idempotency.Executing, nil, what).LeaseExpired, "lease of "+what)
	}
	early("an execution whose lease has not expired")
	s.pass(ctx, lease)
	suite.Equal(true, s.reads(ctx, c, idempotency.Executing, nil, "an execution").LeaseExpired, "lease of an execution after its time")
	suite.Must(s.Driver.Renew(ctx, c, 2*lease), "renewing an execution that nobody has found")
	early("an execution that was renewed")
	s.pass(ctx, lease)
	early("an execution that was renewed for longer")
	s.pass(ctx, lease)
	marked, err := s.Driver.Abandon(ctx, c)
	suite.Must(err, "abandoning")
	suite.Equal(true, marked, "abandoning an execution whose lease has expired")
	refuses(s.Driver.Renew(ctx, c, lease), "renewing what was abandoned")
	refuses(s.Driver.Settle(ctx, c, idempotency.Executing, idempotency.Completed, inline("late")), "completing what was abandoned")
	c.Revision++
	s.reads(ctx, c, idempotency.Abandoned, nil, "an abandoned record")

	s.in(ctx, idempotency.Claimed)
	for range 3 {
		s.in(ctx, idempotency.Executing)
	}
	s.pass(ctx, lease)
	s.in(ctx, idempotency.Executing)
	suite.Equal([]int{2, 1, 0}, []int{s.expires(ctx, 2), s.expires(ctx, 2), s.expires(ctx, 2)}, "records found interrupted, up to 2 at a time")
}

func reaps(ctx context.Context, s Store) {
	reap := func(age time.Duration, what string, want int) {
		n, _, err := s.Driver.Reap(ctx, age, idempotency.Cursor{}, 100)
		suite.Must(err, "reaping "+what)
		suite.Equal(want, n, "records reaped: "+what)
	}
	all := map[idempotency.State]idempotency.Claim{}
	for _, state := range []idempotency.State{idempotency.Claimed, idempotency.Executing, idempotency.Abandoned, idempotency.Completed, idempotency.Failed} {
		all[state] = s.in(ctx, state)
	}
	reap(0, "nothing has expired", 0)
	slow := request(newScope())
	slow.Lease = 2 * expiry
	held := s.claims(ctx, slow, "a new key")
	s.pass(ctx, expiry-time.Minute)
	reap(0, "leases have expired", 0)
	long := request(newScope())
	long.Lease, long.Expiry = 3*expiry, 5*expiry
	kept := s.claims(ctx, long, "a new key")
	s.pass(ctx, time.Minute)
	reap(expiry+time.Minute, "they are not that old", 0)
	reap(expiry, "an answer, a refusal and a claim have expired", 3)
	for state, c := range all {
		switch state {
		case idempotency.Executing, idempotency.Abandoned:
			s.reads(ctx, c, state, nil, "a record that is "+string(state)+" after its time")
		default:
			s.claims(ctx, request(c.Scope), "a key whose record was reaped")
		}
	}
	s.reads(ctx, kept, idempotency.Claimed, nil, "a key with a longer expiry")
	s.reads(ctx, held, idempotency.Claimed, nil, "a claim whose expiry has passed, and its lease has not")

	live := request(newScope())
	live.Lease, live.Expiry = 10*day, 10*day
	s.claims(ctx, live, "a new key") // it is the last
	s.pass(ctx, day)                 // six expired ones: the three claims, kept, held, and a large answer
	c := s.in(ctx, idempotency.Executing)
	s.settles(ctx, c, idempotency.Executing, idempotency.Completed, idempotency.Answer{Payload: []byte("large"), Large: true}, "an execution")
	s.pass(ctx, day)
	var deleted, calls int
	for after := (idempotency.Cursor{}); ; calls++ {
		n, next, err := s.Driver.Reap(ctx, 0, after, 2)
		suite.Must(err, "reaping")
		if n > 2 || calls > 10 {
			suite.Fail("reaping up to 2 at a time: %d at once, in call %d", n, calls)
		}
		deleted += n
		if after = next; next == (idempotency.Cursor{}) {
			break
		}
	}
	suite.Equal(6, deleted, "records reaped, 2 looked at each time")
	for _, from := range []idempotency.State{idempotency.Claimed, idempotency.Executing, idempotency.Abandoned} {
		c := s.in(ctx, from)
		s.pass(ctx, 2*expiry)
		if from == idempotency.Claimed {
			s.completes(ctx, c, inline("late"), "what took longer than its expiry")
		} else {
			s.settles(ctx, c, from, idempotency.Completed, inline("late"), "what took longer than its expiry")
		}
		s.pass(ctx, expiry-time.Minute)
		reap(0, "an answer that came late", 0)
		s.pass(ctx, 3*expiry)
		reap(0, "an answer that came late, after its time", 1)
	}
	s.claims(ctx, request(c.Scope), "a key whose large answer was reaped")
}

func versions(ctx context.Context, s Store) {
	among := func(r idempotency.Request, former ...idempotency.Scope) idempotency.Request {
		r.Former = former
		return r
	}
	old, now := newScope(), newScope()
	before := s.claims(ctx, request(old), "a new key")
	rec, made, err := s.Driver.Claim(ctx, among(request(now), newScope(), old))
	suite.Must(err, "claim")
	suite.Equal(false, made, "a claim of a key that has a record under another version")
	suite.Equal(before, rec.Claim, "a record under another version")
	s.pass(ctx, lease)
	taken, ok, err := s.Driver.TakeOver(ctx, before, among(request(now), old))
	suite.Must(err, "taking over")
	suite.Equal(true, ok, "taking over a record under another version")
	suite.Equal(old, taken.Scope, "scope of a record that was taken over")
	s.completes(ctx, taken, inline("old"), "a record under another version")

	s.claims(ctx, request(now), "the key under the current version, by who knows no other")
	rec, made, err = s.Driver.Claim(ctx, among(request(now), old))
	suite.Must(err, "claim")
	suite.Equal(false, made, "a claim of a key with two records")
	suite.Equal(idempotency.Completed, rec.State, "of two records, one with an answer")
	e, found, err := s.Driver.Find(ctx, []idempotency.Scope{now, old})
	suite.Must(err, "find")
	suite.Equal(true, found && e.State == idempotency.Completed, "finding one with an answer of two")

	older, newer := newScope(), newScope() // the one with an answer is the younger now
	s.claims(ctx, request(older), "a new key")
	s.pass(ctx, time.Second)
	s.completes(ctx, s.claims(ctx, request(newer), "the key under another version"), inline("new"), "a record under another version")
	rec, _, err = s.Driver.Claim(ctx, among(request(older), newer))
	suite.Must(err, "claim")
	suite.Equal(idempotency.Completed, rec.State, "of two records, the younger one with an answer")

	fresh, third := newScope(), newScope()
	s.claims(ctx, among(request(fresh), newScope(), newScope()), "a key that no version has a record of")
	mine := s.claims(ctx, request(third), "a new key")
	others := []idempotency.Scope{newScope(), fresh}
	s.transact(ctx, errRollback, func(ctx context.Context, t *tx.Tx) {
		err := s.Driver.Start(ctx, t, mine, others)
		suite.Equal(true, errors.Is(err, idempotency.ErrRival), "a start beside another version is refused")
	})
	_, err = s.Driver.Execute(ctx, mine, lease, others)
	suite.Equal(true, errors.Is(err, idempotency.ErrRival), "an execution beside another version is refused")
	s.reads(ctx, mine, idempotency.Claimed, nil, "a record beside another version")
	alone := []idempotency.Scope{newScope(), newScope()}
	s.transact(ctx, nil, func(ctx context.Context, t *tx.Tx) {
		suite.Must(s.Driver.Start(ctx, t, mine, alone), "a start with other versions that have no record")
		lost := mine
		lost.Revision++
		refuses(s.Driver.Start(ctx, t, lost, alone), "a start of a stale owner, with other versions")
	})
	_, err = s.Driver.Execute(ctx, mine, lease, alone)
	suite.Must(err, "an execution with other versions that have no record")
}

func secrets(ctx context.Context, s Store) {
	one, two := []byte{1}, []byte{2}
	enroll := func(current string, checks map[string][]byte) error { return s.Driver.Enroll(ctx, current, checks) }
	refused := func(err error, what string) {
		if !errors.Is(err, idempotency.ErrOtherSecret) {
			suite.Fail("%s: want ErrOtherSecret, got %v", what, err)
		}
	}
	for range 2 {
		suite.Must(enroll("a", map[string][]byte{"a": one}), "the first secret")
	}
	refused(enroll("a", map[string][]byte{"a": two}), "another secret under the same version")
	refused(enroll("b", map[string][]byte{"b": one}), "another version")
	refused(enroll("b", map[string][]byte{"a": one, "b": two}), "a version that nobody accepts yet")
	suite.Must(enroll("a", map[string][]byte{"a": one}), "the first secret, after others")
	suite.Must(enroll("a", map[string][]byte{"a": one, "b": two}), "a second secret")
	suite.Must(enroll("b", map[string][]byte{"a": one, "b": two}), "a version that was accepted")
	refused(enroll("a", map[string][]byte{"a": one}), "not knowing the second version")

	r := request(newScope())
	r.KeyVersion = "a"
	c := s.claims(ctx, r, "a new key")
	retires := func(version string, want bool, what string) {
		s.transact(ctx, nil, func(ctx context.Context, t *tx.Tx) {
			done, err := s.Driver.Retire(ctx, t, version)
			suite.Must(err, "retiring "+what)
			suite.Equal(want, done, "retiring "+what)
		})
	}
	retires("a", false, "a version that records are of")
	refused(enroll("b", map[string][]byte{"b": two}), "not knowing a version that could not retire")
	s.settles(ctx, c, idempotency.Claimed, "", idempotency.Answer{}, "a claim")
	s.transact(ctx, errRollback, func(ctx context.Context, t *tx.Tx) {
		_, err := s.Driver.Retire(ctx, t, "a")
		suite.Must(err, "retiring, and rolling back")
	})
	refused(enroll("b", map[string][]byte{"b": two}), "not knowing a version whose retirement was rolled back")
	retires("a", true, "a version that no record is of")
	retires("a", false, "an unknown version")
	suite.Must(enroll("b", map[string][]byte{"b": two}), "the second secret alone")
}

func finds(ctx context.Context, s Store) {
	_, found, err := s.Driver.Find(ctx, []idempotency.Scope{newScope()})
	suite.Must(err, "finding nothing")
	suite.Equal(false, found, "finding nothing")

	_, found, err = s.Driver.Read(ctx, newScope())
	suite.Must(err, "reading nothing")
	suite.Equal(false, found, "reading nothing")
	for _, a := range []idempotency.Answer{inline("small"), {Payload: []byte("large"), Large: true}} {
		c := s.in(ctx, idempotency.Executing)
		s.settles(ctx, c, idempotency.Executing, idempotency.Failed, a, "an execution")
		rec, found, err := s.Driver.Read(ctx, c.Scope)
		suite.Must(err, "reading")
		suite.Equal(true, found, "reading")
		suite.Equal([]any{idempotency.Failed, string(a.Payload)}, []any{rec.State, string(rec.Payload)}, "what was read")
	}

	var claims []idempotency.Claim
	for range 5 {
		claims = append(claims, s.abandoned(ctx))
		s.pass(ctx, time.Second) // each has a time of its own
		s.in(ctx, idempotency.Completed)
	}
	last := s.in(ctx, idempotency.Executing)
	r := request(newScope())
	e, found, err := s.Driver.Find(ctx, []idempotency.Scope{r.Scope, claims[0].Scope})
	suite.Must(err, "finding")
	suite.Equal(true, found, "finding")
	suite.Equal([]any{claims[0], idempotency.Abandoned, "1", r.Tenant, r.Route, false}, []any{e.Claim, e.State, e.KeyVersion, e.Tenant, e.Route, e.LeaseExpired}, "what was found")
	suite.Equal(expiry, e.Expiry.Sub(e.Created), "expiry of what was found")
	if d := e.Lease.Sub(e.Created); d < lease || d > lease+time.Minute || e.Updated.Before(e.Created) {
		suite.Fail("what was found was made at %v, changed at %v, and has a lease until %v", e.Created, e.Updated, e.Lease)
	}

	var listed []idempotency.Claim
	for after, calls := (idempotency.Cursor{}), 0; ; calls++ {
		page, err := s.Driver.List(ctx, idempotency.Abandoned, after, 2)
		suite.Must(err, "listing")
		if len(page) == 0 || calls > 10 {
			break
		}
		for _, e := range page {
			listed, after = append(listed, e.Claim), e.Cursor()
		}
	}
	suite.Equal(claims, listed, "abandoned records, the oldest first, 2 at a time")
	page, err := s.Driver.List(ctx, idempotency.Executing, idempotency.Cursor{}, 10)
	suite.Must(err, "listing")
	suite.Equal(true, len(page) == 1 && page[0].Claim == last, "the one record that is executing")
	s.pass(ctx, lease)
	page, err = s.Driver.List(ctx, idempotency.Completed, idempotency.Cursor{}, 10)
	suite.Must(err, "listing")
	suite.Equal(true, len(page) == 5 && page[0].LeaseExpired, "five records with an answer, whose leases have expired")
}

// reconciles settles what was abandoned in transactions, one of which is rolled back.
func reconciles(ctx context.Context, s Store) {
	for to, a := range map[idempotency.State]idempotency.Answer{
		"": {}, idempotency.Completed: inline("found"), idempotency.Failed: {Payload: []byte("large"), Large: true},
	} {
		c, what := s.abandoned(ctx), "an abandoned record, as "+string(to)
		s.transact(ctx, errRollback, func(ctx context.Context, t *tx.Tx) {
			suite.Must(s.Driver.Reconcile(ctx, t, c, to, a), "reconciling "+what)
			refuses(s.Driver.Reconcile(ctx, t, c, to, a), "reconciling twice "+what)
			s.reads(ctx, c, idempotency.Abandoned, nil, "before the commit: "+what)
		})
		s.reads(ctx, c, idempotency.Abandoned, nil, "after a rollback: "+what)
		s.transact(ctx, nil, func(ctx context.Context, t *tx.Tx) {
			suite.Must(s.Driver.Reconcile(ctx, t, c, to, a), "reconciling "+what)
		})
		s.transact(ctx, errRollback, func(ctx context.Context, t *tx.Tx) {
			refuses(s.Driver.Reconcile(ctx, t, c, to, a), "reconciling again "+what)
		})
		if to == "" {
			s.claims(ctx, request(c.Scope), "a key that was given back")
			continue
		}
		c.Revision++
		s.reads(ctx, c, to, a.Payload, "after the commit: "+what)
	}
}

func objects(ctx context.Context, s Store) {
	ref := func(c idempotency.Claim, name string) idempotency.Ref {
		return idempotency.Ref(c.Scope.String() + "/" + c.Operation + "/" + name)
	}
	var asked, want []idempotency.Ref
	for _, state := range []idempotency.State{idempotency.Claimed, idempotency.Executing, idempotency.Abandoned} {
		c := s.in(ctx, state)
		other := c
		other.Operation = "another"
		want = append(want, ref(c, "a"), ref(c, "b"))
		asked = append(asked, ref(c, "a"), ref(c, "b"), ref(other, "a"))
	}
	c := s.in(ctx, idempotency.Executing)
	s.settles(ctx, c, idempotency.Executing, idempotency.Completed, idempotency.Answer{Ref: ref(c, "kept")}, "an execution")
	want = append(want, ref(c, "kept"))
	asked = append(asked, ref(c, "kept"), ref(c, "lost"))
	for _, a := range []idempotency.Answer{inline(""), {Payload: []byte("x"), Large: true}} {
		c := s.in(ctx, idempotency.Executing)
		s.settles(ctx, c, idempotency.Executing, idempotency.Failed, a, "an execution")
		asked = append(asked, ref(c, "lost"))
	}
	asked = append(asked, ref(idempotency.Claim{Scope: newScope(), Operation: "gone"}, "a"))
	got, err := s.Driver.Live(ctx, asked)
	suite.Must(err, "Live")
	slices.Sort(got)
	slices.Sort(want)
	suite.Equal(want, got, "objects that are, or may be, an answer")
}
