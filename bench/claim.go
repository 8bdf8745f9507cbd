package main

import (
	"context"
	"fmt"
	"time"

	"caskeleton.dev/outbox"
)

// claimer claims as a relay does that has always more to do than it can take.
type claimer struct {
	*backlog
	last  []outbox.Claim
	floor time.Time
}

func (c *claimer) claim(ctx context.Context, n int) error {
	return times(n, func(int) (err error) {
		const lanes = 100
		c.last, err = c.driver.Claim(ctx, outbox.ClaimRequest{Owner: "bench", Limit: lanes, RunSize: 20, Lease: time.Hour, Floor: c.floor})
		if err == nil && len(c.last) != lanes {
			err = fmt.Errorf("%d of %d lanes were claimed", len(c.last), lanes)
		}
		return err
	})
}

// giveBack keeps the depth: what was claimed last is due again, behind all others.
func (c *claimer) giveBack(ctx context.Context) error {
	back := make([]outbox.Settlement, len(c.last))
	for i, l := range c.last {
		back[i] = outbox.Settlement{Claim: l, GiveBack: true}
		if l.Due.After(c.floor) {
			c.floor = l.Due
		}
	}
	c.last = nil
	lost, err := c.driver.Settle(ctx, back)
	if err == nil && len(lost) > 0 {
		err = fmt.Errorf("%d claims were lost", len(lost))
	}
	return err
}

// claims measures claims out of a deep backlog beside those out of a shallow one, each in a database of its own: one event an aggregate,
// which makes the most lanes.
func (f *fixture) claims(ctx context.Context, s sizes) (c comparison, closing func(), err error) {
	var open []*fixture
	closing = func() {
		for _, f := range open {
			_ = f.close(context.WithoutCancel(ctx))
		}
	}
	var by [2]*claimer
	for i, depth := range []int{s.deep, s.shallow} {
		own, err := f.sibling(ctx, fmt.Sprintf("caskeleton_bench_%d", depth))
		if err != nil {
			closing()
			return c, nil, err
		}
		open = append(open, own)
		by[i] = &claimer{backlog: &backlog{fixture: own, events: depth, aggregates: depth}}
	}
	deep, shallow := by[0], by[1]
	both := func(ctx context.Context, a, b func(context.Context) error) error {
		if err := a(ctx); err != nil {
			return err
		}
		return b(ctx)
	}
	return comparison{
		name: "claim of 100 lanes and their runs, " + thousands(s.deep) + " deep beside " + thousands(s.shallow), target: "<= 1.3x",
		kit: side{"pgoutbox.Driver.Claim", deep.claim}, other: side{"pgoutbox.Driver.Claim", shallow.claim}, n: 1, rounds: s.claims,
		setup:  func(ctx context.Context) error { return both(ctx, deep.fill, shallow.fill) },
		before: func(ctx context.Context) error { return both(ctx, deep.giveBack, shallow.giveBack) },
	}, closing, nil
}
