package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"caskeleton.dev/outbox"
)

// nowhere is a publisher without a broker. It calls enough once it was given so many events.
type nowhere struct {
	left   atomic.Int64
	enough func()
}

func (p *nowhere) Publish(_ context.Context, run []outbox.Event) (int, error) {
	if p.left.Add(-int64(len(run))) <= 0 {
		p.enough()
	}
	return len(run), nil
}

// relay drains n events with the relay as it is configured by default.
func (b *backlog) relay(ctx context.Context, n int) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	p := &nowhere{enough: stop}
	p.left.Store(int64(n))
	r, err := outbox.NewRelay(b.driver, p, nil)
	if err != nil {
		return err
	}
	if err := r.Run(running); err != nil {
		return err
	}
	return b.drained(ctx)
}

// drains measures a relay beside one loop over its statements, on the same backlog of a partitioned table.
func (f *fixture) drains(s sizes) []comparison {
	var all []comparison
	for _, events := range s.drains {
		b := &backlog{fixture: f, events: events, aggregates: 1000}
		rounds := s.drainRounds
		all = append(all, comparison{
			name: fmt.Sprintf("drain of %s events in 1,000 aggregates, ordered", thousands(events)), target: ">= 60 %",
			kit: side{"outbox.Relay", b.relay}, other: side{"claim, read, complete in a loop", b.loop},
			n: events, rounds: rounds, setup: b.fill, before: b.rewind,
		})
	}
	return all
}
