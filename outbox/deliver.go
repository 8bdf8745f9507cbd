package outbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
	"caskeleton.dev/internal/failpoint"
)

// deliverer publishes what was claimed, each lane in a goroutine of its own, and passes the outcome on to be settled.
type deliverer struct {
	*Relay
	settler    *settler
	broker     *pause
	publishing sync.WaitGroup
}

// deliver starts the delivery of claims that were asked for at start, or gives them back: when the relay ends, and where they came with an
// error (ok is false). Leases are measured from start, by the local monotonic clock: they began later.
func (d *deliverer) deliver(ctx, work context.Context, claims []Claim, start time.Time, ok bool) {
	d.settler.slots.take(len(claims))
	d.settler.pending.Add(int64(len(claims)))
	for _, c := range claims {
		switch {
		case !ok || ctx.Err() != nil:
			d.settler.settle(start, Settlement{Claim: c, GiveBack: true})
		case len(c.Run) == 0:
			d.settler.settle(start, d.empty(work, c))
		default:
			d.publishing.Go(func() { d.settler.settle(start, d.publish(work, c, start)) })
		}
	}
}

// empty settles a lane whose run has no event.
func (d *deliverer) empty(ctx context.Context, c Claim) Settlement {
	s := Settlement{Claim: c}
	if c.Gap {
		d.metrics.failed(ctx, reasonGap)
		d.opts.Logger.ErrorContext(ctx, "outbox event missing; its lane does not move past it",
			"aggregate_type", c.AggregateType, "aggregate_id", c.AggregateID, "sequence", c.Next, "attempt", c.Attempt)
		s.Failure = fmt.Sprintf("event %d of the aggregate is missing", c.Next)
		s.Retry = d.retry(c.Attempt)
	}
	return s
}

// publish sends the run of c, and says what became of it.
func (d *deliverer) publish(work context.Context, c Claim, start time.Time) Settlement {
	last := start.Add(d.opts.Lease - d.opts.Margin)
	if time.Until(last) <= 0 {
		return Settlement{Claim: c, GiveBack: true}
	}
	limit := time.Now().Add(d.opts.PublishTimeout)
	if last.Before(limit) {
		limit = last
	}
	ctx, cancel := context.WithDeadline(work, limit)
	defer cancel()
	acked, err := d.call(ctx, c.Run)
	if acked > 0 {
		failpoint.Hit(failpoint.AfterPublish)
	}
	if acked < 0 || acked > len(c.Run) {
		acked, err = 0, fault.Textf("the publisher named %d of %d events as stored", acked, len(c.Run))
	}
	d.metrics.published.Add(work, int64(acked))
	s := Settlement{Claim: c, Acked: acked}
	switch {
	case acked == len(c.Run):
		d.broker.succeeded()
	case work.Err() != nil: // cancelled by the end of the relay
		s.GiveBack = acked == 0
	case errors.Is(err, ErrBrokerDown):
		if d.broker.trip() { // no lane keeps this error, since no event is at fault
			d.opts.Logger.WarnContext(ctx, "outbox broker is down or refused; the relay pauses and goes on trying", "error", fault.Reason(err))
		}
		d.metrics.failed(work, reasonBrokerDown)
		s.GiveBack = acked == 0
	default:
		d.broker.succeeded()
		d.fail(ctx, &s, err)
	}
	return s
}

// errPanic is what a publish that panicked ends with.
var errPanic error = fault.Text("the publisher panicked")

func (d *deliverer) call(ctx context.Context, run []Event) (acked int, err error) {
	defer func() {
		if v := recover(); v != nil {
			d.opts.Logger.ErrorContext(ctx, "outbox publisher panicked", "panic_type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			acked, err = 0, fault.Textf("%w: a value of type %T", errPanic, v) // the value itself may be what nobody may log
		}
	}()
	return d.publisher.Publish(ctx, run)
}

// fail makes s the settlement of a run whose next event failed. ctx is the publish's.
func (d *deliverer) fail(ctx context.Context, s *Settlement, err error) {
	reason := reasonError
	switch {
	case err == nil:
		err = fault.Textf("the publisher named %d of %d events as stored, and gave no reason", s.Acked, len(s.Claim.Run))
	case errors.Is(err, errPanic):
		reason = reasonPanic
	case ctx.Err() != nil:
		reason = reasonTimeout
	}
	attempt := s.Claim.Attempt
	if s.Acked > 0 {
		attempt = 1 // what failed is not the head that was claimed
	}
	s.Failure, s.Retry = fault.Reason(err), d.retry(attempt)
	d.metrics.failed(ctx, reason)
	if attempt&(attempt-1) == 0 { // 1, 2, 4, ...: the lane keeps the last error of the others
		e := s.Claim.Run[s.Acked]
		d.opts.Logger.WarnContext(ctx, "outbox event not published; it is tried again", "event_id", e.ID, "event_type", e.Type,
			"aggregate_type", e.AggregateType, "aggregate_id", e.AggregateID, "sequence", e.Sequence, "attempt", attempt, "retry_in", s.Retry, "error", s.Failure)
	}
}

func (d *deliverer) retry(attempt int) time.Duration {
	return backoff.FullJitter(backoff.Bound(d.opts.BackoffBase, d.opts.BackoffMax, attempt))
}
