package outbox

import (
	"context"
	"sync/atomic"
	"time"

	"caskeleton.dev/internal/backoff"
	"caskeleton.dev/internal/failpoint"
)

const (
	linger      = 2 * time.Millisecond // how long an outcome waits for others to be settled with it
	callTimeout = 5 * time.Second      // bound on one call of the store, other than a claim
)

// outcome is a settlement on its way to the store.
type outcome struct {
	Settlement
	expires time.Time // the lease, by the local clock
}

// more reports whether the lane is known to have more to deliver.
func (o outcome) more() bool { return o.Claim.More && o.Acked == len(o.Claim.Run) }

// settler writes outcomes, those of a few milliseconds together. Outcomes that the store does not take now are kept, and their slots with
// them, so that a relay does not publish what it cannot settle.
type settler struct {
	*Relay
	slots   *slots
	results chan outcome
	pending atomic.Int64 // lanes whose outcome is not known yet
	health  health
}

func newSettler(r *Relay) *settler {
	return &settler{
		Relay: r, slots: newSlots(), results: make(chan outcome, r.opts.Concurrency),
		health: health{log: r.opts.Logger, call: "settle"},
	}
}

// settle takes the outcome of a claim that was asked for at start.
func (s *settler) settle(start time.Time, r Settlement) {
	s.pending.Add(-1)
	s.results <- outcome{r, start.Add(s.opts.Lease)}
}

// close says that there are no more outcomes.
func (s *settler) close() { close(s.results) }

// run settles until there are no more outcomes. Once ctx is done the store gets no second chance.
func (s *settler) run(ctx context.Context) {
	for first := range s.results {
		batch := s.gather(first)
		var a after
		for _, o := range batch {
			a = after{a.look || o.more(), a.ask || !o.more()}
		}
		s.flush(ctx, batch)
		s.slots.free(len(batch), a)
	}
}

// gather waits for outcomes as long as some are on their way, the batch is not full and first has not waited for long.
func (s *settler) gather(first outcome) []outcome {
	batch := append(make([]outcome, 0, s.opts.BatchSize), first)
	t := time.NewTimer(linger)
	defer t.Stop()
	for len(batch) < s.opts.BatchSize {
		select {
		case o, ok := <-s.results:
			if !ok {
				return batch
			}
			batch = append(batch, o)
			continue
		default:
		}
		if s.pending.Load() == 0 {
			return batch
		}
		select {
		case o, ok := <-s.results:
			if !ok {
				return batch
			}
			batch = append(batch, o)
		case <-t.C:
			return batch
		}
	}
	return batch
}

// flush writes batch, again and again until the store answers. An outcome whose lease is over meanwhile is let go: its lane is claimed
// again, and its events are sent once more.
func (s *settler) flush(ctx context.Context, batch []outcome) {
	for try := 1; ; try++ {
		lost, err := s.write(ctx, batch)
		s.health.note(ctx, err)
		if err == nil {
			s.lose(ctx, lost)
			return
		}
		if backoff.Wait(ctx, backoff.Jitter(backoff.Bound(s.opts.BackoffBase, min(s.opts.BackoffMax, pauseMax), try), 4)) != nil {
			s.lose(ctx, lanes(batch))
			return
		}
		batch = s.expire(ctx, batch)
		if len(batch) == 0 {
			return
		}
	}
}

func (s *settler) write(ctx context.Context, batch []outcome) ([]Lane, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all := make([]Settlement, len(batch))
	for i, o := range batch {
		all[i] = o.Settlement
	}
	failpoint.Hit(failpoint.BeforeComplete)
	return s.driver.Settle(ctx, all)
}

// expire lets go of what has no lease any more.
func (s *settler) expire(ctx context.Context, batch []outcome) []outcome {
	var live, dead []outcome
	for _, o := range batch {
		if time.Until(o.expires) > 0 {
			live = append(live, o)
		} else {
			dead = append(dead, o)
		}
	}
	s.lose(ctx, lanes(dead))
	return live
}

// lose records claims that were lost, which an unclear outcome of an earlier try can also look like.
func (s *settler) lose(ctx context.Context, lost []Lane) {
	if len(lost) == 0 {
		return
	}
	s.metrics.lost.Add(ctx, int64(len(lost)))
	s.opts.Logger.WarnContext(ctx, "outbox claims lost before they were settled; their events may be sent again", "lanes", len(lost),
		"aggregate_type", lost[0].AggregateType, "aggregate_id", lost[0].AggregateID)
}

func lanes(batch []outcome) []Lane {
	all := make([]Lane, len(batch))
	for i, o := range batch {
		all[i] = o.Claim.Lane
	}
	return all
}
