package outboxtest

import (
	"context"
	"time"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/outbox"
)

// waiting checks when a lane comes due.
func waiting() []suite.Check[Store] {
	return []suite.Check[Store]{
		{Name: "a failed head waits for its retry", Run: retry},
		{Name: "the next due time is told", Run: nextDue},
	}
}

func retry(ctx context.Context, s Store) {
	s.commit(ctx, events("a", 1, 2)...)
	s.settle(ctx, outbox.Settlement{Claim: s.one(ctx, "a"), Failure: "refused", Retry: 2 * time.Hour})
	s.nothing(ctx, "the head waits for its retry")
	if in, _ := s.due(ctx, true); in <= time.Hour || in > 2*time.Hour {
		suite.Fail("a head that is to wait for two hours is due in %v", in)
	}
	s.expire(ctx)
	c := s.one(ctx, "a")
	suite.Equal(texts("a", 1, 2), payloads(c.Run), "run after the wait")
	s.settle(ctx, outbox.Settlement{Claim: c, Acked: 1, Failure: "refused", Retry: time.Hour})
	s.nothing(ctx, "the head behind an acknowledged event waits for its retry")
	s.expire(ctx)
	suite.Equal([]string{"a2"}, payloads(s.one(ctx, "a").Run), "run after the wait")
}

func nextDue(ctx context.Context, s Store) {
	s.due(ctx, false)
	s.commit(ctx, event("a", 1))
	in, at := s.due(ctx, true)
	if in > 0 || at.IsZero() {
		suite.Fail("a lane with a committed event is due in %v, at %v", in, at)
	}
	c := s.one(ctx, "a")
	leaseIn, leaseEnd := s.due(ctx, true)
	if leaseIn <= 0 || leaseIn > time.Hour || leaseEnd.Sub(at) < time.Hour {
		suite.Fail("a lane leased for an hour is due in %v, at %v", leaseIn, leaseEnd)
	}
	s.commit(ctx, event("b", 1))
	if in, second := s.due(ctx, true); in > 0 || !second.Before(leaseEnd) {
		suite.Fail("beside a leased lane, one with a committed event is due in %v", in)
	}
	s.settle(ctx, done(c), done(s.one(ctx, "b")))
	s.due(ctx, false)
}
