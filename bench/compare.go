package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// side is one of the two things compared: it does its operation n times.
type side struct {
	name string
	run  func(ctx context.Context, n int) error
}

// comparison runs the kit and a floor or a peer in turn, so that whatever the machine does meanwhile befalls both.
type comparison struct {
	name   string
	target string // what the contract asks, in words
	kit    side
	other  side // the zero side where there is nothing to compare with
	n      int  // operations a round
	rounds int
	setup  func(ctx context.Context) error // once, before the rounds; nil for nothing
	before func(ctx context.Context) error // before each turn of either side, not measured; nil for nothing
}

// cost is what one operation takes.
type cost struct {
	time   time.Duration
	allocs float64
}

// result holds medians over the rounds.
type result struct {
	comparison
	kitCost, otherCost cost
	ratio              float64 // median of the ratios of time round by round, 0 without another side
}

func (c comparison) measure(ctx context.Context) (result, error) {
	var kit, other []cost
	var ratios []float64
	if c.setup != nil {
		if err := c.setup(ctx); err != nil {
			return result{}, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	for i := range c.rounds + 1 { // the first one warms up
		var k, o cost
		order := []func() error{
			func() (err error) { k, err = c.turn(ctx, c.kit); return err },
			func() (err error) { o, err = c.turn(ctx, c.other); return err },
		}
		if i%2 == 1 { // neither is always the one that finds the caches cold
			slices.Reverse(order)
		}
		for _, run := range order {
			if err := run(); err != nil {
				return result{}, fmt.Errorf("%s: %w", c.name, err)
			}
		}
		if i == 0 {
			continue
		}
		kit, other = append(kit, k), append(other, o)
		if o.time > 0 {
			ratios = append(ratios, float64(k.time)/float64(o.time))
		}
	}
	r := result{comparison: c, kitCost: medians(kit), otherCost: medians(other)}
	if len(ratios) > 0 {
		r.ratio = median(ratios)
	}
	return r, nil
}

func (c comparison) turn(ctx context.Context, s side) (cost, error) {
	if c.before != nil && s.run != nil {
		if err := c.before(ctx); err != nil {
			return cost{}, err
		}
	}
	return s.measure(ctx, c.n)
}

// measure returns the cost of one operation, over n of them.
func (s side) measure(ctx context.Context, n int) (cost, error) {
	if s.run == nil {
		return cost{}, nil
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	err := s.run(ctx, n)
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return cost{took / time.Duration(n), float64(after.Mallocs-before.Mallocs) / float64(n)}, err
}

func medians(rounds []cost) cost {
	var times []time.Duration
	var allocs []float64
	for _, c := range rounds {
		times, allocs = append(times, c.time), append(allocs, c.allocs)
	}
	return cost{median(times), median(allocs)}
}

func median[T time.Duration | float64](v []T) T {
	slices.Sort(v)
	return v[len(v)/2]
}
