package natsbroker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

const consumerName = "shipping"

// consume runs a consumer until the test ends, or the returned stop was called. stop waits for Run.
func consume(t *testing.T, s *natsbroker.Stream, h natsbroker.Handler, o natsbroker.ConsumerOptions) (stop func()) {
	t.Helper()
	c, err := natsbroker.NewConsumer(s, consumerName, h, &o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

// settled waits until the consumer has acknowledged all of the stream. What is pending does not say: of a consumer that has just been made, it is
// nothing for a moment.
func (b *broker) settled(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		str, err := b.js().Stream(t.Context(), "events")
		if err != nil {
			return false
		}
		c, err := str.Consumer(t.Context(), consumerName)
		if err != nil {
			return false
		}
		info := c.CachedInfo()
		return info.AckFloor.Stream >= str.CachedInfo().State.LastSeq && info.NumPending == 0 && info.NumAckPending == 0
	}, soon, 50*time.Millisecond)
}

// ledger notes effects, each once, as an inbox does.
type ledger struct {
	mu     sync.Mutex
	order  map[string][]int64
	seen   map[string]bool
	active map[string]bool
	broken []string
}

func newLedger() *ledger {
	return &ledger{order: map[string][]int64{}, seen: map[string]bool{}, active: map[string]bool{}}
}

func (l *ledger) enter(m inbox.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active[m.AggregateID] {
		l.broken = append(l.broken, m.ID+" ran beside another of its aggregate")
	}
	l.active[m.AggregateID] = true
}

func (l *ledger) leave(m inbox.Message, effect bool) inbox.Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active[m.AggregateID] = false
	switch {
	case !effect:
		return inbox.Failed
	case l.seen[m.ID]:
		return inbox.Duplicate
	}
	l.seen[m.ID] = true
	l.order[m.AggregateID] = append(l.order[m.AggregateID], m.Sequence)
	return inbox.Handled
}

func (l *ledger) effects() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}

func (l *ledger) requireOrdered(t *testing.T, aggregates, each int) {
	t.Helper()
	var want []int64
	for n := range each {
		want = append(want, int64(n+1))
	}
	require.Empty(t, l.broken)
	require.Len(t, l.order, aggregates)
	for a, got := range l.order {
		require.Equal(t, want, got, "aggregate %s", a)
	}
}

func shortly() error { return &fault.Error{Code: fault.Internal, After: 10 * time.Millisecond} }

func TestAMessageArrivesAsItWasRecorded(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	e := event("a", 1)
	e.Headers = map[string]string{"traceparent": "00-1-2-01", "Tenant": "ä\n"}
	publishAll(t.Context(), t, publisher(t, s), []outbox.Event{e})
	got := make(chan inbox.Message, 1)
	consume(t, s, func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		got <- m
		return inbox.Handled, nil
	}, natsbroker.ConsumerOptions{})
	require.Equal(t, inbox.Message{
		ID: "a-1", Type: "order.changed", AggregateType: "order", AggregateID: "a", Sequence: 1, Payload: []byte(`{"n":1}`),
		ContentType: "application/json", Headers: e.Headers, Deliveries: 1,
	}, <-got)
	b.settled(t)
}

func TestOrderPerAggregateHoldsOverFailuresAndARestartOfTheBroker(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	p := publisher(t, s)
	const aggregates, each = 12, 25
	l := newLedger()
	half := make(chan struct{})
	consume(t, b.stream(), func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		l.enter(m)
		<-time.After(rand.N(2 * time.Millisecond))
		out := l.leave(m, rand.N(4) > 0)
		if out == inbox.Handled && l.effects() == aggregates*each/2 {
			close(half)
		}
		if out == inbox.Failed {
			return out, shortly()
		}
		return out, nil
	}, natsbroker.ConsumerOptions{AckWait: 2 * time.Second, MaxAckPending: 64})
	var wg sync.WaitGroup
	for a := range aggregates {
		wg.Go(func() { publishAll(t.Context(), t, p, events(fmt.Sprint("o", a), 1, each)) })
	}
	<-half
	wg.Wait()
	b.restart()
	require.Eventually(t, func() bool { return l.effects() == aggregates*each }, soon, tick)
	b.settled(t)
	l.requireOrdered(t, aggregates, each)
}

func TestOneFailingAggregateHoldsUpNoOther(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	p := publisher(t, s)
	publishAll(t.Context(), t, p, events("poison", 1, 5))
	publishAll(t.Context(), t, p, events("good", 1, 5))
	l := newLedger()
	attempts := make(chan int, 100)
	consume(t, s, func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		l.enter(m)
		if m.ID == "poison-1" {
			defer l.leave(m, false)
			attempts <- m.Deliveries
			if m.Deliveries == 4 && l.effects() == 5 {
				return inbox.Parked, nil
			}
			return inbox.Failed, shortly()
		}
		return l.leave(m, true), nil
	}, natsbroker.ConsumerOptions{Concurrency: 2})
	for want := 1; want <= 4; want++ {
		require.Equal(t, want, <-attempts, "each try counts")
	}
	b.settled(t)
	require.Equal(t, []int64{1, 2, 3, 4, 5}, l.order["good"])
	require.Equal(t, []int64{2, 3, 4, 5}, l.order["poison"], "parked, it lets the others go on")
	require.Empty(t, attempts, "and is not delivered again")
}

func TestAnOutageOfTheDatabaseWearsNoMessageOut(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	publishAll(t.Context(), t, publisher(t, s), events("a", 1, 1))
	attempts := make(chan int, 10)
	codes := []fault.Code{fault.DBUnavailable, fault.DBPoolExhausted, fault.Internal, {}}
	consume(t, s, func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		attempts <- m.Deliveries
		code := codes[0]
		codes = codes[1:]
		if code == (fault.Code{}) {
			return inbox.Handled, nil
		}
		return inbox.Failed, &fault.Error{Code: code, After: time.Millisecond}
	}, natsbroker.ConsumerOptions{})
	for _, want := range []int{1, 1, 1, 2} {
		require.Equal(t, want, <-attempts)
	}
	b.settled(t)
}

func TestABusyMessageIsGivenBackAndNotOvertaken(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	publishAll(t.Context(), t, publisher(t, s), events("a", 1, 3))
	var seen []string
	all := make(chan struct{})
	consume(t, s, func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		seen = append(seen, fmt.Sprintf("%s delivery %d", m.ID, m.Deliveries))
		if m.Redelivered != (m.Deliveries > 1) {
			t.Errorf("%s delivery %d: Redelivered is %t", m.ID, m.Deliveries, m.Redelivered)
		}
		if len(seen) <= 2 {
			return inbox.Busy, shortly()
		}
		if m.ID == "a-3" {
			defer close(all)
		}
		return inbox.Handled, nil
	}, natsbroker.ConsumerOptions{})
	<-all
	require.Equal(t, []string{"a-1 delivery 1", "a-1 delivery 2", "a-1 delivery 3", "a-2 delivery 1", "a-3 delivery 1"}, seen)
	b.settled(t)
}

func TestASlowHandlerKeepsItsMessage(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	const ackWait = 300 * time.Millisecond
	deliveries := make(chan inbox.Message, 10)
	release := make(chan struct{})
	consume(t, s, func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		deliveries <- m
		<-release
		return inbox.Handled, nil
	}, natsbroker.ConsumerOptions{AckWait: ackWait, Concurrency: 1})
	// The broker's clock is the real one: wait until it has seen several heartbeats of what runs and what waits behind it.
	nc, err := nats.Connect(b.srv.URL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	sub, err := nc.SubscribeSync("$JS.ACK.events." + consumerName + ".>")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	publishAll(t.Context(), t, publisher(t, s), events("a", 1, 2))
	<-deliveries
	for range 2 * 3 * 3 { // two messages, three heartbeats an AckWait, three AckWaits
		m, err := sub.NextMsg(soon)
		require.NoError(t, err)
		require.Equal(t, "+WPI", string(m.Data))
	}
	require.Empty(t, deliveries)
	close(release)
	require.Equal(t, 1, (<-deliveries).Deliveries)
	b.settled(t)
}

func TestALostAcknowledgementEndsInARecognisedRedelivery(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	publishAll(t.Context(), t, publisher(t, s), events("a", 1, 3))
	l := newLedger()
	first := make(chan struct{})
	duplicate := make(chan string, 10)
	var once sync.Once
	consume(t, b.stream(), func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		l.enter(m)
		once.Do(func() { b.srv.Shutdown(); close(first) }) // between the effect and the acknowledgement
		out := l.leave(m, true)
		if out == inbox.Duplicate {
			duplicate <- m.ID
		}
		return out, nil
	}, natsbroker.ConsumerOptions{AckWait: 500 * time.Millisecond})
	<-first
	require.Eventually(t, func() bool { return l.effects() >= 1 }, soon, tick)
	b.start()
	require.Equal(t, "a-1", <-duplicate)
	require.Eventually(t, func() bool { return l.effects() == 3 }, soon, tick)
	b.settled(t)
	l.requireOrdered(t, 1, 3)
}

func TestTheMessagesOfAKilledProcessComeAgain(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	publishAll(t.Context(), t, publisher(t, s), events("a", 1, 2))
	c := b.connect(natsbroker.ConnOptions{MonitorURL: b.srv.MonitorURL(), Timeout: 200 * time.Millisecond})
	killed, err := natsbroker.NewConsumer(streamOn(t, c, natsbroker.StreamOptions{}), consumerName, func(context.Context, inbox.Message) (inbox.Outcome, error) {
		c.Close() // as a kill does, without a word to the broker
		return inbox.Failed, errors.New("never told")
	}, &natsbroker.ConsumerOptions{AckWait: 500 * time.Millisecond, DrainTimeout: time.Millisecond})
	require.NoError(t, err)
	require.ErrorContains(t, killed.Run(t.Context()), "the connection was closed")

	got := make(chan inbox.Message, 10)
	consume(t, s, func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		got <- m
		return inbox.Handled, nil
	}, natsbroker.ConsumerOptions{AckWait: 500 * time.Millisecond})
	for _, id := range []string{"a-1", "a-2"} {
		m := <-got
		require.Equal(t, id, m.ID)
		require.Equal(t, 2, m.Deliveries)
	}
	b.settled(t)
}

func TestStoppingFinishesWhatRunsAndGivesTheRestBackAtOnce(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	publishAll(t.Context(), t, publisher(t, s), append(events("a", 1, 2), events("b", 1, 3)...))
	entered, release := make(chan inbox.Message), make(chan struct{})
	stop := consume(t, s, func(ctx context.Context, m inbox.Message) (inbox.Outcome, error) {
		entered <- m
		<-release
		require.NoError(t, ctx.Err())
		return inbox.Handled, nil
	}, natsbroker.ConsumerOptions{Concurrency: 1, AckWait: time.Hour, DrainTimeout: time.Hour})
	finish := sync.OnceFunc(func() { close(release) })
	t.Cleanup(finish)
	require.Equal(t, "a-1", (<-entered).ID)
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()

	// Another process gets what did not run, although AckWait is an hour.
	got := make(chan string, 10)
	c, err := natsbroker.NewConsumer(b.stream(), consumerName, func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		got <- m.ID
		return inbox.Handled, nil
	}, &natsbroker.ConsumerOptions{Concurrency: 1, AckWait: time.Hour})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	for _, id := range []string{"b-1", "b-2", "b-3"} {
		require.Equal(t, id, <-got)
	}
	finish()
	require.Equal(t, "a-2", <-got, "after the one that ran")
	<-stopped
	b.settled(t)
	cancel()
	require.NoError(t, <-ended)
}

func TestStoppingCancelsHandlersThatDoNotFinish(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	publishAll(t.Context(), t, publisher(t, s), events("a", 1, 1))
	entered := make(chan struct{})
	stop := consume(t, s, func(ctx context.Context, _ inbox.Message) (inbox.Outcome, error) {
		close(entered)
		<-ctx.Done()
		return inbox.Failed, ctx.Err()
	}, natsbroker.ConsumerOptions{DrainTimeout: time.Millisecond, AckWait: time.Hour})
	<-entered
	stop()
	got := make(chan inbox.Message, 1)
	consume(t, s, func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		got <- m
		return inbox.Handled, nil
	}, natsbroker.ConsumerOptions{AckWait: time.Hour})
	require.Equal(t, "a-1", (<-got).ID, "it was given back")
}

func TestTypesNobodyHandlesAndMessagesThatAreNoEventsDoNotStay(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	strange := event("a", 1)
	strange.Type = "order.unheard_of"
	other := event("b", 1)
	other.AggregateType = "invoice"
	publishAll(t.Context(), t, publisher(t, s), []outbox.Event{strange})
	publishAll(t.Context(), t, publisher(t, s), []outbox.Event{other})
	_, err := b.js().Publish(t.Context(), "events.order.noise", []byte("canary"))
	require.NoError(t, err)
	publishAll(t.Context(), t, publisher(t, s), events("a", 2, 2))
	var log syncBuffer
	in := &fakeInbox{}
	ran := make(chan inbox.Message, 10)
	consume(t, s, natsbroker.Route(in, map[string]natsbroker.Effect{"order.changed": func(_ context.Context, _ *tx.Tx, m inbox.Message) error {
		ran <- m
		return nil
	}}), natsbroker.ConsumerOptions{AggregateTypes: []string{"order"}, Logger: logTo(&log)})
	require.Equal(t, "a-2", (<-ran).ID)
	b.settled(t)
	require.Empty(t, ran)
	require.Equal(t, []string{"a-2"}, in.ids)
	require.Contains(t, log.String(), "NATS message is no event")
	require.NotContains(t, log.String(), "canary")
}

type fakeInbox struct{ ids []string }

func (f *fakeInbox) Handle(ctx context.Context, m inbox.Message, fn func(context.Context, *tx.Tx) error) (inbox.Outcome, error) {
	f.ids = append(f.ids, m.ID)
	return inbox.Handled, fn(ctx, nil)
}

// TestAMessageThatTheInboxRefusesHoldsUpNothing: no redelivery mends it, so it is tried once.
func TestAMessageThatTheInboxRefusesHoldsUpNothing(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	publishAll(t.Context(), t, publisher(t, s), events("a", 1, 2))
	var log syncBuffer
	ran := make(chan string, 10)
	consume(t, s, func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		ran <- m.ID
		if m.ID == "a-1" {
			return inbox.Failed, &fault.Error{Code: fault.RequestInvalid, Err: inbox.ErrInvalidMessage}
		}
		return inbox.Handled, nil
	}, natsbroker.ConsumerOptions{Logger: logTo(&log)})
	require.Equal(t, "a-1", <-ran)
	require.Equal(t, "a-2", <-ran)
	b.settled(t)
	require.Contains(t, log.String(), "NATS message is no event")
}

func TestADeletedConsumerIsMadeAgain(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	p := publisher(t, s)
	publishAll(t.Context(), t, p, events("a", 1, 1))
	l := newLedger()
	consume(t, s, func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		l.enter(m)
		return l.leave(m, true), nil
	}, natsbroker.ConsumerOptions{})
	require.Eventually(t, func() bool { return l.effects() == 1 }, soon, tick)
	require.NoError(t, b.js().DeleteConsumer(t.Context(), "events", consumerName))
	publishAll(t.Context(), t, p, events("a", 2, 2))
	require.Eventually(t, func() bool { return l.effects() == 2 }, soon, tick)
}

func TestBadConsumerOptions(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	h := func(context.Context, inbox.Message) (inbox.Outcome, error) { return inbox.Handled, nil }
	for want, o := range map[string]natsbroker.ConsumerOptions{
		"Concurrency is -1":    {Concurrency: -1},
		"MaxAckPending is 2":   {MaxAckPending: 2},
		"AckWait is 1ms":       {AckWait: time.Millisecond},
		"DrainTimeout is -1ns": {DrainTimeout: -1},
	} {
		_, err := natsbroker.NewConsumer(s, consumerName, h, &o)
		require.ErrorContains(t, err, want)
	}
	_, err := natsbroker.NewConsumer(s, "a b", h, nil)
	require.ErrorContains(t, err, `consumer "a b" is no consumer name`)
	_, err = natsbroker.NewConsumer(s, consumerName, nil, nil)
	require.ErrorContains(t, err, "a handler")

	// What the broker itself refuses ends Run: another kind of consumer has the name.
	_, err = s.Check(t.Context())
	require.NoError(t, err)
	_, err = b.js().CreateConsumer(t.Context(), "events", jetstream.ConsumerConfig{Durable: consumerName, AckPolicy: jetstream.AckNonePolicy})
	require.NoError(t, err)
	c, err := natsbroker.NewConsumer(s, consumerName, h, nil)
	require.NoError(t, err)
	require.ErrorContains(t, c.Run(t.Context()), `consumer "shipping"`)
}
