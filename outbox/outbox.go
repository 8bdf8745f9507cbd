package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

const (
	defaultPayload = 1 << 20
	largestPayload = 16 << 20
	defaultHeaders = 16 << 10
	largestHeaders = 64 << 10
)

// Options configure an [Outbox]. The zero value is the default.
type Options struct {
	PayloadLimit int // bytes of one event's payload; 0 means 1 MiB, at most 16 MiB. Brokers have limits of their own
	HeadersLimit int // bytes of one event's header names and values; 0 means 16 KiB, at most 64 KiB
}

// Outbox records events. Safe for concurrent use.
type Outbox struct {
	driver Driver
	opts   Options
	bell   *Bell
}

// New returns an outbox that records with d.
func New(d Driver, o *Options) (*Outbox, error) {
	ob := &Outbox{driver: d, bell: NewBell()}
	if d == nil {
		return nil, errors.New("outbox: a driver is required; adapter/postgres/pgoutbox has one")
	}
	if o != nil {
		ob.opts = *o
	}
	for _, l := range []struct {
		name              string
		value             *int
		standard, largest int
	}{
		{"PayloadLimit", &ob.opts.PayloadLimit, defaultPayload, largestPayload},
		{"HeadersLimit", &ob.opts.HeadersLimit, defaultHeaders, largestHeaders},
	} {
		if *l.value < 0 || *l.value > l.largest {
			return nil, fmt.Errorf("outbox: %s is %d; use 1 to %d bytes, or 0 for %d", l.name, *l.value, l.largest, l.standard)
		}
		if *l.value == 0 {
			*l.value = l.standard
		}
	}
	return ob, nil
}

// Append records events in t: they are delivered if, and only if, t commits. Without events it does nothing. All events of a call cost
// one round trip.
//
// Append once, as the last thing in the transaction, with all its events. An append locks its aggregates until the commit, so writers of
// one aggregate queue from there on; within a call they are locked in sorted order, but two transactions that append to the same two
// aggregates by several calls, in opposite order, deadlock (DB_DEADLOCK).
//
// Codes: OUTBOX_EVENT_INVALID names everything that is wrong with any of the events, as events[i].field, before the database is
// touched; TX_READ_ONLY likewise. OUTBOX_EVENT_DUPLICATE, OUTBOX_PARTITION_MISSING and those of the database leave t unable to commit.
func (o *Outbox) Append(ctx context.Context, t *tx.Tx, events ...Event) error {
	const op = "outbox.Append"
	if _, err := tx.Unwrap(t); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	if t.ReadOnly() {
		return fault.New(fault.TXReadOnly, op, nil)
	}
	if len(events) == 0 {
		return nil
	}
	if problems := o.opts.validate(events); len(problems) > 0 {
		return &fault.Error{Code: fault.OutboxEventInvalid, Op: op, Fields: problems}
	}
	filled := fill(ctx, events)
	if err := o.driver.Append(ctx, t, filled); err != nil {
		return err
	}
	return t.AfterCommit(func(context.Context) error {
		o.bell.Ring(lanesOf(filled))
		return nil
	})
}

// Bell returns the doorbell that rings after each commit of an append in this process. At most one relay may listen to it.
func (o *Outbox) Bell() *Bell { return o.bell }

// fill returns copies with what Append adds.
func fill(ctx context.Context, events []Event) []Event {
	trace := traceHeaders(ctx)
	filled := make([]Event, len(events))
	for i, e := range events {
		if e.ID == "" {
			e.ID = newID()
		}
		if e.SchemaVersion == 0 {
			e.SchemaVersion = 1
		}
		if e.ContentType == "" {
			e.ContentType = "application/json"
		}
		e.Headers = withTrace(e.Headers, trace)
		e.Sequence, e.RecordedAt = 0, time.Time{}
		filled[i] = e
	}
	return filled
}

// lanesOf returns each lane once.
func lanesOf(events []Event) []Lane {
	seen := map[Lane]bool{}
	var lanes []Lane
	for _, e := range events {
		if l := e.Lane(); !seen[l] {
			seen[l] = true
			lanes = append(lanes, l)
		}
	}
	return lanes
}
