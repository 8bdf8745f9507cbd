package natsbroker

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/internal/backoff"
	"caskeleton.dev/internal/failpoint"
)

const (
	baseDelay = 200 * time.Millisecond // of a failure that asks for none
	maxDelay  = time.Minute
)

// run is one Run: the loop owns all of it, handlers only their delivery.
type run struct {
	c        *Consumer
	lanes    *lanes
	running  int
	arrived  chan *delivery
	done     chan result
	stopping <-chan struct{} // nil once it was noticed
	draining bool
	cancel   context.CancelFunc // of the handlers
}

type result struct {
	d       *delivery
	outcome inbox.Outcome
	err     error
}

// loop ends when nothing arrives any more and no handler runs.
func (r *run) loop(ctx context.Context, ended <-chan error) error {
	heartbeat := time.NewTicker(r.c.opts.AckWait / 3)
	defer heartbeat.Stop()
	wake := time.NewTimer(0)
	defer wake.Stop()
	var bound <-chan time.Time
	var err error
	for ended != nil || r.running > 0 {
		select {
		case d := <-r.arrived:
			r.lanes.add(d, time.Now())
		case res := <-r.done:
			r.running--
			r.settle(ctx, res)
		case <-heartbeat.C:
			for _, d := range r.lanes.bySeq {
				_ = d.broker().InProgress() // lost ones end in a redelivery, which is recognised
			}
		case <-wake.C:
		case <-bound:
			r.c.opts.Logger.WarnContext(ctx, "NATS consumer cancels handlers that did not finish", "consumer", r.c.name, "handlers", r.running)
			r.cancel()
		case <-r.stopping:
			r.stopping, r.draining = nil, true
			bound = time.After(r.c.opts.DrainTimeout)
		case err = <-ended:
			ended, r.draining = nil, true
			if bound == nil {
				bound = time.After(r.c.opts.DrainTimeout)
			}
		}
		if r.draining {
			if ended != nil {
				continue // what is given back before fetching has ended would come here again
			}
			for _, d := range r.lanes.idle() {
				_ = d.broker().Nak()
			}
			continue
		}
		if next := r.start(ctx); !next.IsZero() {
			wake.Reset(time.Until(next))
		}
	}
	return err
}

// start runs what may run, and returns the time at which more may.
func (r *run) start(ctx context.Context) time.Time {
	now := time.Now()
	next := r.lanes.wake(now)
	for r.running < r.c.opts.Concurrency {
		d := r.lanes.start(now)
		if d == nil {
			break
		}
		r.running++
		go r.handle(ctx, d) // its end is counted in settle
	}
	return next
}

// handle runs the handler and acknowledges what took effect. Order is kept by the lane, which goes on after it.
func (r *run) handle(ctx context.Context, d *delivery) {
	m := d.message
	m.Deliveries, m.Redelivered = d.attempts(), d.message.Deliveries > 1
	outcome, err := r.c.handler(ctx, m)
	if outcome == inbox.Handled || outcome == inbox.Duplicate {
		failpoint.Hit(failpoint.BeforeAck)
		r.c.acknowledge(ctx, d)
	}
	r.done <- result{d, outcome, err}
}

// acknowledge waits for the broker's word, so that a lost acknowledgement is known. There is nothing to do about it: the message is delivered
// again, and recognised.
func (c *Consumer) acknowledge(ctx context.Context, d *delivery) {
	ctx, cancel := c.stream.conn.bounded(context.WithoutCancel(ctx))
	defer cancel()
	if err := d.broker().DoubleAck(ctx); err != nil {
		c.opts.Logger.WarnContext(ctx, "NATS acknowledgement lost; the message will be delivered again", "consumer", c.name, "message_id", d.message.ID, "error", fault.Reason(told(err)))
	}
}

// settle does what an outcome asks for. The error's text may hold values, and is the inbox's to log.
func (r *run) settle(ctx context.Context, res result) {
	d := res.d
	switch {
	case res.outcome == inbox.Handled || res.outcome == inbox.Duplicate:
		r.lanes.finish(d)
	case errors.Is(res.err, inbox.ErrInvalidMessage):
		r.c.drop(ctx, d.broker(), d.seq, res.err)
		r.lanes.finish(d)
	case res.outcome == inbox.Parked:
		// Lost, it leads to a redelivery that is parked again.
		_ = d.broker().TermWithReason("parked for an operator")
		r.lanes.finish(d)
	case res.outcome == inbox.Busy:
		delay := delayOf(res.err, d.attempts())
		_ = d.broker().NakWithDelay(delay)
		r.lanes.giveBack(d, time.Now().Add(delay+r.c.opts.AckWait))
	default:
		delay := delayOf(res.err, d.attempts())
		r.lanes.retry(d, time.Now().Add(delay), !storeDown(res.err))
		r.c.opts.Logger.DebugContext(ctx, "NATS message is tried again", "consumer", r.c.name, "message_id", d.message.ID, "attempt", d.attempts(), "delay", delay)
	}
}

// storeDown reports whether a failure is nobody's: an outage of the database, or a partition that nobody has made, must
// not wear out the messages that wait for its end.
func storeDown(err error) bool {
	if _, ok := errors.AsType[notRunError](err); ok {
		return true
	}
	code := fault.CodeOf(err)
	return code == fault.DBUnavailable || code == fault.DBPoolExhausted || code == fault.DBReadOnly || code == fault.OutboxPartitionMissing
}

// delayOf is what the error asks for, or else exponential with jitter.
func delayOf(err error, attempt int) time.Duration {
	if after, ok := fault.RetryAfter(err); ok {
		return after
	}
	return backoff.Jitter(backoff.Bound(baseDelay, maxDelay, attempt), 2)
}

// receive makes a delivery of what the broker sent, nil if it is no event.
func (c *Consumer) receive(ctx context.Context, raw jetstream.Msg) *delivery {
	meta, err := raw.Metadata()
	if err != nil {
		return nil // not from JetStream
	}
	m, err := decode(raw.Headers(), raw.Data())
	if err != nil {
		c.drop(ctx, raw, meta.Sequence.Stream, err)
		return nil
	}
	m.Deliveries = int(min(meta.NumDelivered, 1<<30))
	d := &delivery{message: m, seq: meta.Sequence.Stream}
	d.raw.Store(&raw)
	return d
}

// drop refuses a message for good that no redelivery mends. It stays in the stream.
func (c *Consumer) drop(ctx context.Context, raw jetstream.Msg, seq uint64, err error) {
	c.opts.Logger.ErrorContext(ctx, "NATS message is no event, and is dropped", "consumer", c.name, "stream_sequence", seq, "error", fault.Reason(err))
	_ = raw.TermWithReason("no event")
}
