package outboxtest

import (
	"context"
	"time"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/outbox"
)

// settling checks what settlements and renewals change, and when they may.
func settling() []suite.Check[Store] {
	spoiled := func(name string, spoil func(c *outbox.Claim)) suite.Check[Store] {
		return suite.Check[Store]{Name: "a claim with a stale " + name + " changes nothing", Run: func(ctx context.Context, s Store) {
			s.commit(ctx, events("a", 1, 3)...)
			c := s.one(ctx, "a")
			stale := c
			spoil(&stale)
			s.refuses(ctx, c, stale)
		}}
	}
	return []suite.Check[Store]{
		spoiled("owner", func(c *outbox.Claim) { c.Owner = "other" }),
		spoiled("next", func(c *outbox.Claim) { c.Next++; c.Run = c.Run[1:] }),
		spoiled("epoch", func(c *outbox.Claim) { c.Epoch++ }),
		{Name: "a claim with a stale token changes nothing", Run: staleToken},
		{Name: "an expired lease is taken over", Run: takeover},
		{Name: "a lease is renewed", Run: renewal},
		{Name: "attempt counts claims of the head", Run: attempts},
		{Name: "an empty run is settled", Run: emptyRun},
		{Name: "a drained lane goes away and comes back", Run: drained},
	}
}

// refuses checks that stale, a spoiled copy of the live claim c, is lost for every use, and that c is as good as before.
func (s Store) refuses(ctx context.Context, c, stale outbox.Claim) {
	_, before := s.due(ctx, true)
	lost := func(what string, lanes []outbox.Lane, err error) {
		suite.Must(err, what)
		suite.Equal([]outbox.Lane{c.Lane}, lanes, what+" with a stale claim: lanes reported as lost")
	}
	lanes, err := s.Driver.Renew(ctx, []outbox.Claim{stale}, 5*time.Hour)
	lost("renewal", lanes, err)
	for what, settlement := range map[string]outbox.Settlement{
		"acknowledgement": {Claim: stale, Acked: 1},
		"failure":         {Claim: stale, Failure: "refused"},
		"giving back":     {Claim: stale, GiveBack: true},
	} {
		lanes, err := s.Driver.Settle(ctx, []outbox.Settlement{settlement})
		lost(what, lanes, err)
	}
	if _, after := s.due(ctx, true); !after.Equal(before) {
		suite.Fail("stale claims moved the lease's end from %v to %v", before, after)
	}
	s.nothing(ctx, "the lane is still leased")
	s.settle(ctx, outbox.Settlement{Claim: c, Failure: "refused"})
	again := s.one(ctx, c.AggregateID)
	suite.Equal(c.Next, again.Next, "Next, which stale claims must not move")
	suite.Equal(c.Attempt+1, again.Attempt, "Attempt, which stale claims must not change")
}

// staleToken has the same relay claim the same head again: nothing but the token tells the claims apart.
func staleToken(ctx context.Context, s Store) {
	s.commit(ctx, events("a", 1, 3)...)
	stale := s.one(ctx, "a")
	s.settle(ctx, outbox.Settlement{Claim: stale, GiveBack: true})
	c := s.one(ctx, "a")
	suite.Equal(stale.Attempt, c.Attempt, "Attempt after giving back")
	s.refuses(ctx, c, stale)
}

func takeover(ctx context.Context, s Store) {
	s.commit(ctx, events("a", 1, 2)...)
	stale := s.one(ctx, "a")
	s.nothing(ctx, "the lane is leased")
	s.expire(ctx)
	r := request("heir")
	claims := s.claim(ctx, r)
	suite.Equal([]string{"a"}, aggregates(claims), "aggregates whose lease has expired")
	suite.Equal(2, claims[0].Attempt, "Attempt of the claim after one that expired")
	s.refuses(ctx, claims[0], stale)
}

func renewal(ctx context.Context, s Store) {
	s.commit(ctx, events("a", 1, 2)...)
	c := s.one(ctx, "a")
	if in, _ := s.due(ctx, true); in <= 0 || in > time.Hour {
		suite.Fail("a lane leased for an hour is due in %v", in)
	}
	s.expire(ctx)
	lost, err := s.Driver.Renew(ctx, []outbox.Claim{c}, 3*time.Hour)
	suite.Must(err, "renew")
	suite.Equal(0, len(lost), "claims lost that nobody has taken over")
	if in, _ := s.due(ctx, true); in <= time.Hour || in > 3*time.Hour {
		suite.Fail("a lane renewed for three hours is due in %v", in)
	}
	s.nothing(ctx, "the lease was renewed")
	s.settle(ctx, outbox.Settlement{Claim: c, Acked: 1})
	lost, err = s.Driver.Renew(ctx, []outbox.Claim{c}, time.Hour)
	suite.Must(err, "renew")
	suite.Equal([]outbox.Lane{c.Lane}, lost, "lanes lost, of a claim that was settled")
	suite.Equal([]string{"a2"}, payloads(s.one(ctx, "a").Run), "run")
}

func attempts(ctx context.Context, s Store) {
	s.commit(ctx, events("a", 1, 3)...)
	for _, step := range []struct {
		attempt int
		what    string
		then    outbox.Settlement
	}{
		{1, "first claim", outbox.Settlement{Failure: "refused"}},
		{2, "claim after a failure", outbox.Settlement{GiveBack: true}},
		{2, "claim after giving back", outbox.Settlement{Failure: "refused"}},
		{3, "claim after two failures", outbox.Settlement{Acked: 1}},
		{1, "first claim of the next head", outbox.Settlement{Failure: "refused"}},
		{2, "claim of the next head after a failure", outbox.Settlement{Acked: 1, Failure: "refused"}},
		{2, "claim of a head that failed behind an acknowledged event", outbox.Settlement{Acked: 1}},
	} {
		c := s.one(ctx, "a")
		suite.Equal(step.attempt, c.Attempt, "Attempt of the "+step.what)
		step.then.Claim = c
		s.settle(ctx, step.then)
	}
	s.commit(ctx, event("a", 4))
	suite.Equal(1, s.one(ctx, "a").Attempt, "Attempt of the first claim of a lane that was made again")
}

// emptyRun drains a lane beside an open append, and looks at it in vain.
func emptyRun(ctx context.Context, s Store) {
	s.commit(ctx, event("a", 1))
	s.open(ctx, nil, func() {
		s.settle(ctx, done(s.one(ctx, "a")))
		for range 3 {
			s.expire(ctx)
			for _, c := range s.claim(ctx, request("relay")) { // a driver may find out otherwise when the append commits
				suite.Equal(nil, payloads(c.Run), "run")
				suite.Equal(false, c.Gap, "Gap where an append is open")
				suite.Equal(1, c.Attempt, "Attempt after looking in vain")
				s.settle(ctx, done(c))
			}
		}
	}, event("a", 2))
	s.expire(ctx)
	c := s.one(ctx, "a")
	suite.Equal([]string{"a2"}, payloads(c.Run), "run")
	suite.Equal(1, c.Attempt, "Attempt of the first claim that found the event")
}

func drained(ctx context.Context, s Store) {
	for n := 1; n <= 3; n++ {
		s.due(ctx, false)
		s.commit(ctx, event("a", n))
		c := s.one(ctx, "a")
		suite.Equal(int64(n), c.Next, "Next of a lane that was made again")
		suite.Equal(texts("a", n, n), payloads(c.Run), "run")
		if n == 3 {
			s.commit(ctx, event("a", 4)) // behind the run
		}
		s.settle(ctx, done(c))
	}
	suite.Equal([]string{"a4"}, payloads(s.one(ctx, "a").Run), "run of what was committed behind the claim")
}
