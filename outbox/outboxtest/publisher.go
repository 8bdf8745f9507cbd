package outboxtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/outbox"
)

// PublisherHarness makes what [TestPublisher] tests.
type PublisherHarness struct {
	// New returns a broker that no other check uses: they run in parallel. It cleans up by t.Cleanup.
	New func(t *testing.T) Broker
}

// Broker is a broker that runs and has stored nothing, with a publisher for it. Every field is required.
type Broker struct {
	Publisher outbox.Publisher
	// Stored returns the ids of what is stored, in the broker's order; while the broker runs.
	Stored func(ctx context.Context) ([]string, error)
	// Refused returns e such that the broker refuses it, and it alone: with a payload that is too large, say.
	Refused func(e outbox.Event) outbox.Event
	// Stop takes the broker down, and Start up again with what it had stored.
	Stop, Start func(ctx context.Context) error
}

// TestPublisher checks what [outbox.Publisher] promises, each promise in a subtest of its name.
func TestPublisher(t *testing.T, h PublisherHarness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("outboxtest: PublisherHarness.New is required: let it return a running broker")
	}
	suite.Test(t, publisherChecks(), h.New)
}

func publisherChecks() []suite.Check[Broker] {
	return []suite.Check[Broker]{
		{Name: "what is acknowledged is stored", Run: acknowledged},
		{Name: "a run is stored in order", Run: inOrder},
		{Name: "the same id is stored once", Run: storedOnce},
		{Name: "nothing is stored after a failed event", Run: refused},
		{Name: "a broker that is down gets the rest later", Run: down},
		{Name: "the context is respected", Run: cancelled},
	}
}

// run returns events as a relay passes them on.
func run(id string, from, to int) []outbox.Event {
	all := events(id, from, to)
	for i := range all {
		all[i].Sequence = int64(from + i)
		all[i].OccurredAt = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
		all[i].RecordedAt = all[i].OccurredAt
	}
	return all
}

// publish fails unless all of the run is acknowledged.
func (b Broker) publish(ctx context.Context, run []outbox.Event) {
	acked, err := b.Publisher.Publish(ctx, run)
	suite.Must(err, "publish")
	suite.Equal(len(run), acked, "events acknowledged")
}

// has fails unless the broker has stored want and nothing else.
func (b Broker) has(ctx context.Context, want []outbox.Event, what string) {
	got, err := b.Stored(ctx)
	suite.Must(err, "Stored")
	var ids []string
	for _, e := range want {
		ids = append(ids, e.ID)
	}
	if !slices.Equal(ids, got) {
		suite.Fail("%s: want %v stored, got %v", what, ids, got)
	}
}

func acknowledged(ctx context.Context, b Broker) {
	b.publish(ctx, nil)
	b.has(ctx, nil, "an empty run")
	b.publish(ctx, run("a", 1, 5))
	b.has(ctx, run("a", 1, 5), "a run of five")
}

// inOrder publishes many aggregates at once.
func inOrder(ctx context.Context, b Broker) {
	ids := []string{"a", "b", "c", "d"}
	const each = 12
	var g errgroup.Group
	for _, id := range ids {
		g.Go(func() error {
			for n := 1; n <= each; n += 4 {
				if acked, err := b.Publisher.Publish(ctx, run(id, n, n+3)); err != nil || acked != 4 {
					return errors.Join(err, errShort)
				}
			}
			return nil
		})
	}
	suite.Must(g.Wait(), "publish")
	stored, err := b.Stored(ctx)
	suite.Must(err, "Stored")
	for _, id := range ids {
		var want, got []string
		for _, e := range run(id, 1, each) {
			want = append(want, e.ID)
		}
		for _, s := range stored {
			if slices.Contains(want, s) {
				got = append(got, s)
			}
		}
		suite.Equal(want, got, "events of one aggregate, in the broker's order")
	}
}

var errShort = errors.New("not all of a run was acknowledged")

func storedOnce(ctx context.Context, b Broker) {
	b.publish(ctx, run("a", 1, 3))
	b.publish(ctx, run("a", 1, 3))
	b.has(ctx, run("a", 1, 3), "a run that was sent twice")
	b.publish(ctx, run("a", 2, 5))
	b.has(ctx, run("a", 1, 5), "a run of which a part was sent before")
}

func refused(ctx context.Context, b Broker) {
	all := run("a", 1, 4)
	all[2] = b.Refused(all[2])
	for range 2 { // a second try finds the first two stored, and gets no further
		acked, err := b.Publisher.Publish(ctx, all)
		if err == nil {
			suite.Fail("a run with an event that the broker refuses was published without an error, %d acknowledged", acked)
		}
		if errors.Is(err, outbox.ErrBrokerDown) {
			suite.Fail("the fault is the event's, and the error is ErrBrokerDown, for which it would be sent for ever: %v", err)
		}
		suite.Equal(2, acked, "events acknowledged before the one that failed")
		b.has(ctx, all[:2], "a run whose third event failed")
	}
	b.publish(ctx, run("b", 1, 1))
	b.publish(ctx, run("a", 3, 4))
	b.has(ctx, append(run("a", 1, 2), append(run("b", 1, 1), run("a", 3, 4)...)...), "the rest, once the broker takes it")
}

func down(ctx context.Context, b Broker) {
	b.publish(ctx, run("a", 1, 2))
	suite.Must(b.Stop(ctx), "Stop")
	rest := run("a", 3, 5)
	acked, err := b.Publisher.Publish(ctx, rest)
	if !errors.Is(err, outbox.ErrBrokerDown) {
		suite.Fail("a broker that is down was answered with %v, not ErrBrokerDown, which costs the event an attempt", err)
	}
	suite.Equal(0, acked, "events acknowledged by a broker that is down")
	suite.Must(b.Start(ctx), "Start")
	for len(rest) > 0 {
		acked, err := b.Publisher.Publish(ctx, rest)
		if err == nil && acked < len(rest) {
			suite.Fail("%d of %d events were acknowledged, and no error says why", acked, len(rest))
		}
		rest = rest[acked:]
		if err != nil {
			select {
			case <-ctx.Done():
				suite.Must(err, "publish to a broker that is up again")
			case <-time.After(20 * time.Millisecond): // a relay pauses too
			}
		}
	}
	b.has(ctx, run("a", 1, 5), "a broker that was down in between")
}

func cancelled(ctx context.Context, b Broker) {
	b.publish(ctx, run("a", 1, 1))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	acked, err := b.Publisher.Publish(ended, run("a", 2, 3))
	if !errors.Is(err, context.Canceled) {
		suite.Fail("a publish whose context had ended returned %v, not context.Canceled", err)
	}
	if errors.Is(err, outbox.ErrBrokerDown) {
		suite.Fail("the end of the caller's context says nothing about the broker, and the error is ErrBrokerDown: %v", err)
	}
	suite.Equal(0, acked, "events acknowledged although the context had ended")
	b.publish(ctx, run("a", 2, 3))
	b.has(ctx, run("a", 1, 3), "a run that was sent again after its context had ended")
}
