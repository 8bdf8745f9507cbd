package main

import (
	"context"
	"fmt"
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
}

// result holds medians over the rounds.
type result struct {
	comparison
	kitOp, otherOp time.Duration
	ratio          float64 // median of the ratios round by round, 0 without another side
}

func (c comparison) measure(ctx context.Context) (result, error) {
	var kit, other []time.Duration
	var ratios []float64
	for i := range c.rounds + 1 { // the first one warms up
		k, err := c.kit.time(ctx, c.n)
		if err != nil {
			return result{}, fmt.Errorf("%s: %s: %w", c.name, c.kit.name, err)
		}
		o, err := c.other.time(ctx, c.n)
		if err != nil {
			return result{}, fmt.Errorf("%s: %s: %w", c.name, c.other.name, err)
		}
		if i == 0 {
			continue
		}
		kit, other = append(kit, k), append(other, o)
		if o > 0 {
			ratios = append(ratios, float64(k)/float64(o))
		}
	}
	r := result{comparison: c, kitOp: median(kit), otherOp: median(other)}
	if len(ratios) > 0 {
		r.ratio = median(ratios)
	}
	return r, nil
}

// time returns the time of one operation.
func (s side) time(ctx context.Context, n int) (time.Duration, error) {
	if s.run == nil {
		return 0, nil
	}
	start := time.Now()
	err := s.run(ctx, n)
	return time.Since(start) / time.Duration(n), err
}

func median[T time.Duration | float64](v []T) T {
	slices.Sort(v)
	return v[len(v)/2]
}
