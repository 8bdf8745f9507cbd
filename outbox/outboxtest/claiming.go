package outboxtest

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/outbox"
)

// claiming checks who gets which lane, and what of it.
func claiming() []suite.Check[Store] {
	return []suite.Check[Store]{
		{Name: "nothing overtakes the head", Run: headGate},
		{Name: "a lane is claimed once at a time", Run: once},
		{Name: "limits are respected", Run: limits},
		{Name: "rung lanes come first, at most half of the limit", Run: rung},
		{Name: "a bell shortens no back-off", Run: bell},
		{Name: "lanes below the floor are not looked at", Run: floor},
	}
}

// headGate looks for a way past a head that waits, is in flight or has failed.
func headGate(ctx context.Context, s Store) {
	a := lane("a")
	gate := func(why string) {
		suite.Equal(nil, aggregates(s.claim(ctx, request("other", a))), why+": aggregates claimed")
	}
	s.commit(ctx, events("a", 1, 3)...)
	r := request("relay")
	r.RunSize = 1
	c := s.claim(ctx, r)[0]
	suite.Equal([]string{"a1"}, payloads(c.Run), "run")
	gate("the head is in flight")
	s.commit(ctx, event("a", 4))
	gate("the head is in flight, and there is a new event")
	s.settle(ctx, outbox.Settlement{Claim: c, Failure: "refused", Retry: time.Hour})
	gate("the head waits for its retry")
	s.commit(ctx, event("a", 5))
	gate("the head waits for its retry, and there is a new event")
	s.expire(ctx)
	c = s.one(ctx, "a")
	suite.Equal(texts("a", 1, 5), payloads(c.Run), "run that begins with the head that failed")
	s.settle(ctx, outbox.Settlement{Claim: c, Acked: 2})
	c = s.one(ctx, "a")
	suite.Equal(int64(3), c.Next, "Next behind two acknowledged events")
	suite.Equal(texts("a", 3, 5), payloads(c.Run), "run behind two acknowledged events")
}

func once(ctx context.Context, s Store) {
	ids := []string{"a", "b", "c", "d", "e", "f"}
	for _, id := range ids {
		s.commit(ctx, event(id, 1))
	}
	const relays = 4
	claims := make([][]outbox.Claim, relays)
	var g errgroup.Group
	for i := range relays {
		g.Go(func() (err error) {
			r := request("relay")
			r.Limit, r.Rung = 4, []outbox.Lane{lane("e"), lane("f")}
			claims[i], err = s.Driver.Claim(ctx, r)
			return err
		})
	}
	suite.Must(g.Wait(), "claim")
	all := append(slices.Concat(claims...), s.claim(ctx, request("last"))...)
	got := aggregates(all)
	slices.Sort(got)
	suite.Equal(ids, got, "aggregates that several relays claimed together")
	tokens := map[string]bool{}
	for _, c := range all {
		tokens[c.Token] = true
	}
	suite.Equal(len(ids), len(tokens), "different tokens")
	for _, c := range all {
		s.settle(ctx, done(c))
		s.commit(ctx, event(c.AggregateID, 2))
	}
	for _, c := range s.claim(ctx, request("relay")) {
		if tokens[c.Token] {
			suite.Fail("a lane that was removed and made again gave the same token to two claims")
		}
	}
}

func limits(ctx context.Context, s Store) {
	for _, id := range []string{"a", "b", "c"} {
		s.commit(ctx, events(id, 1, 5)...)
	}
	r := request("relay")
	r.Limit, r.RunSize = 2, 2
	suite.Equal([]int{2, 1, 0}, []int{len(s.claim(ctx, r)), len(s.claim(ctx, r)), len(s.claim(ctx, r))}, "lanes claimed of three, two at most")
	s.expire(ctx)
	r.Limit = 10
	for n, want := range [][]int{{1, 2}, {3, 4}, {5, 5}} {
		claims := s.claim(ctx, r)
		suite.Equal(3, len(claims), "lanes claimed")
		for _, c := range claims {
			suite.Equal(texts(c.AggregateID, want[0], want[1]), payloads(c.Run), "run of two events at most")
			if n < 2 && !c.More {
				suite.Fail("a run of two ended before the last event, and More is not set")
			}
			suite.Equal(false, c.Gap, "Gap where nothing is missing")
			s.settle(ctx, done(c))
		}
	}
	s.due(ctx, false)
}

func rung(ctx context.Context, s Store) {
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		s.commit(ctx, event(id, 1))
	}
	r := request("relay", lane("f"))
	r.Limit = 2
	got := aggregates(s.claim(ctx, r))
	slices.Sort(got)
	suite.Equal([]string{"a", "f"}, got, "two aggregates, of which the last one is rung for")
	r.Limit, r.Rung = 4, []outbox.Lane{lane("c"), lane("d"), lane("e"), lane("unknown")}
	got = aggregates(s.claim(ctx, r))
	for _, id := range []string{"b", "c", "d"} {
		if !slices.Contains(got, id) {
			suite.Fail("aggregates claimed: %v, without %s; two were to be those first rung for, the others those that are due longest", got, id)
		}
	}
	suite.Equal(4, len(got), "aggregates claimed")
}

func bell(ctx context.Context, s Store) {
	s.commit(ctx, event("a", 1))
	s.settle(ctx, outbox.Settlement{Claim: s.one(ctx, "a"), Failure: "refused", Retry: time.Hour})
	suite.Equal(nil, aggregates(s.claim(ctx, request("relay", lane("a")))), "aggregates claimed that wait for a retry, by a bell")
	s.commit(ctx, event("a", 2))
	suite.Equal(nil, aggregates(s.claim(ctx, request("relay", lane("a")))), "aggregates claimed that wait for a retry, by the bell of a new event")
}

func floor(ctx context.Context, s Store) {
	s.commit(ctx, event("a", 1))
	_, at := s.due(ctx, true)
	r := request("relay")
	r.Floor = at.Add(time.Second)
	suite.Equal(nil, aggregates(s.claim(ctx, r)), "aggregates claimed that are due before the floor")
	r.Floor = at
	claims := s.claim(ctx, r)
	suite.Equal([]string{"a"}, aggregates(claims), "aggregates claimed that are due at the floor")
	if !claims[0].Due.Equal(at) {
		suite.Fail("the claim says that the lane had come due at %v, NextDue said %v", claims[0].Due, at)
	}
}
