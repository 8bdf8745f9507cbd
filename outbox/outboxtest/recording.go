package outboxtest

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// recording checks what becomes of appended events.
func recording() []suite.Check[Store] {
	return []suite.Check[Store]{
		{Name: "delivered if and only if committed", Run: delivered},
		{Name: "delivered as recorded", Run: recorded},
		{Name: "in commit order without holes", Run: ordered},
		{Name: "an open append hides nothing and blocks nothing", Run: openAppend},
		{Name: "a duplicate id fails the transaction", Run: duplicate},
		{Name: "one call locks its aggregates in one order", Run: lockOrder},
	}
}

func delivered(ctx context.Context, s Store) {
	s.nothing(ctx, "an empty outbox")
	s.open(ctx, errRollback, func() { s.nothing(ctx, "the append is not committed") }, event("a", 1))
	s.nothing(ctx, "the append was rolled back")
	s.due(ctx, false)
	s.open(ctx, nil, func() { s.nothing(ctx, "the append is not committed") }, event("a", 2))
	suite.Equal([]string{"a2"}, payloads(s.one(ctx, "a").Run), "events that were committed")
}

func recorded(ctx context.Context, s Store) {
	want := outbox.Event{
		ID: "0198c0de-0000-7000-8000-000000000001", Type: "order.placed", SchemaVersion: 3, AggregateType: "order", AggregateID: "ä b/1", AggregateVersion: 7,
		Payload: []byte{0, 0xff, '\n'}, ContentType: "application/octet-stream", Headers: map[string]string{"traceparent": "00-1", "ü": ""},
		OccurredAt: time.Date(2026, 2, 3, 4, 5, 6, 7000, time.UTC),
	}
	s.commit(ctx, want)
	c := s.one(ctx, want.AggregateID)
	suite.Equal(1, len(c.Run), "events in the run")
	got := c.Run[0]
	if !got.OccurredAt.Equal(want.OccurredAt) {
		suite.Fail("occurred at %v, delivered as %v", want.OccurredAt, got.OccurredAt)
	}
	if got.RecordedAt.IsZero() || got.RecordedAt.Before(c.Since) {
		suite.Fail("recorded at %v, which is before the claim's Since %v", got.RecordedAt, c.Since)
	}
	want.Sequence, want.RecordedAt, want.OccurredAt = 1, got.RecordedAt, got.OccurredAt
	suite.Equal(want, got, "event")
	s.settle(ctx, done(c))

	s.commit(ctx, event("plain", 1))
	got = s.one(ctx, "plain").Run[0]
	suite.Equal(0, got.AggregateVersion, "aggregate version of an event without one")
	suite.Equal(0, len(got.Headers), "headers of an event without any")
	if got.OccurredAt.IsZero() {
		suite.Fail("an event that names no time occurred at the zero time, not when it was recorded")
	}
}

// ordered has writers of one aggregate compete, some in vain, while it is drained in short runs.
func ordered(ctx context.Context, s Store) {
	const writers, each = 4, 6
	var g errgroup.Group
	for w := range writers {
		g.Go(func() error {
			for n := range each {
				err := s.append(ctx, nil, event("a", 100*w+2*n), event("a", 100*w+2*n+1))
				if err == nil {
					err = s.append(ctx, errRollback, event("a", 100*w+50+n))
				}
				if !errors.Is(err, errRollback) {
					return err
				}
			}
			return nil
		})
	}
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }()
	var got []outbox.Event
	for len(got) < 2*writers*each {
		suite.Must(ctx.Err(), "not all events were delivered")
		r := request("relay")
		r.RunSize = 3
		s.expire(ctx)
		for _, c := range s.claim(ctx, r) {
			got = append(got, c.Run...)
			s.settle(ctx, done(c))
		}
		select {
		case err := <-ended:
			suite.Must(err, "append")
			ended = nil
		default:
		}
	}
	last := map[byte]string{}
	for i, e := range got {
		suite.Equal(int64(i+1), e.Sequence, "sequence of an event in delivery order")
		if i > 0 && e.RecordedAt.Before(got[i-1].RecordedAt) {
			suite.Fail("event %d was recorded before event %d", i+1, i)
		}
		n := string(e.Payload[1:])
		for len(n) < 3 {
			n = "0" + n
		}
		if n <= last[n[0]] {
			suite.Fail("event %s of a writer came after event %s", n, last[n[0]])
		}
		last[n[0]] = n
	}
}

func openAppend(ctx context.Context, s Store) {
	s.commit(ctx, event("a", 1))
	s.open(ctx, nil, func() {
		c := s.one(ctx, "a")
		suite.Equal([]string{"a1"}, payloads(c.Run), "events claimed beside an open append")
		s.settle(ctx, done(c))
	}, event("a", 2))
	s.expire(ctx)
	c := s.one(ctx, "a")
	suite.Equal([]string{"a2"}, payloads(c.Run), "events of the append that was open")
	s.open(ctx, errRollback, func() { s.settle(ctx, done(c)) }, event("a", 3))
	for range 3 { // at most: the lane may have stayed for the events that never came
		s.expire(ctx)
		for _, c := range s.claim(ctx, request("relay")) {
			suite.Equal(nil, payloads(c.Run), "events of an append that was rolled back")
			s.settle(ctx, done(c))
		}
	}
	s.due(ctx, false)
}

func duplicate(ctx context.Context, s Store) {
	first, second := event("a", 1), event("b", 1)
	s.commit(ctx, first)
	second.ID = first.ID
	var refused error
	err := s.Runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
		suite.Must(s.Driver.Append(ctx, t, []outbox.Event{event("c", 1)}), "append")
		refused = s.Driver.Append(ctx, t, []outbox.Event{event("d", 1), second})
		return nil // as if nothing had happened
	})
	if !errors.Is(refused, fault.OutboxEventDuplicate) {
		suite.Fail("an id that is recorded was answered with %v, not OUTBOX_EVENT_DUPLICATE", refused)
	}
	if err == nil {
		suite.Fail("a transaction committed whose append was refused")
	}
	c := s.one(ctx, "a")
	suite.Equal([]string{"a1"}, payloads(c.Run), "events under the id")
}

// lockOrder has appends name the same aggregates in opposite order.
func lockOrder(ctx context.Context, s Store) {
	var g errgroup.Group
	for w := range 2 {
		g.Go(func() error {
			for n := range 20 {
				pair := []outbox.Event{event("a", 100*w+n), event("b", 100*w+n)}
				pair[0], pair[1] = pair[w], pair[1-w]
				if err := s.append(ctx, nil, pair...); err != nil {
					return err
				}
			}
			return nil
		})
	}
	suite.Must(g.Wait(), "append to the same aggregates in opposite order, each in one call")
}
