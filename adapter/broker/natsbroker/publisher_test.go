package natsbroker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/adapter/broker/natsbroker/embedded"
	"caskeleton.dev/outbox"
)

func TestARunIsStoredOnceAndInOrder(t *testing.T) {
	b := newBroker(t)
	p := publisher(t, b.stream())
	run := events("a", 1, 5)
	for range 2 { // the second time all are duplicates, which are as good
		acked, err := p.Publish(t.Context(), run)
		require.NoError(t, err)
		require.Equal(t, 5, acked)
	}
	require.Equal(t, ids(run), b.stored())

	acked, err := p.Publish(t.Context(), nil)
	require.NoError(t, err)
	require.Zero(t, acked)
}

func TestTheEmbeddedServerNeedsNoMonitor(t *testing.T) {
	srv, err := embedded.Start(t.Context(), embedded.Options{DataDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(srv.Shutdown)
	c, err := natsbroker.Connect("", &natsbroker.ConnOptions{Server: srv})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	s := streamOn(t, c, natsbroker.StreamOptions{Create: true})
	d, err := s.Check(t.Context())
	require.NoError(t, err)
	require.Equal(t, natsbroker.Durability{Replicas: 1, Sync: natsbroker.SyncAlways}, d)
	acked, err := publisher(t, s).Publish(t.Context(), events("a", 1, 2))
	require.NoError(t, err)
	require.Equal(t, 2, acked)
}

func TestNothingIsStoredAfterAnEventThatFailed(t *testing.T) {
	b := newBroker(t)
	p := publisher(t, b.stream())
	run := events("a", 1, 4)
	run[2].Payload = []byte(strings.Repeat("canary", 1<<20)) // more than a server takes
	for range 2 {
		acked, err := p.Publish(t.Context(), run)
		require.ErrorContains(t, err, "event a-3")
		require.NotErrorIs(t, err, outbox.ErrBrokerDown, "the fault is the event's")
		require.NotContains(t, err.Error(), "canary")
		require.Equal(t, 2, acked)
		require.Equal(t, []string{"a-1", "a-2"}, b.stored())
	}
}

func TestAFullStreamPausesTheRelay(t *testing.T) {
	b := newBroker(t)
	s := streamOn(t, b.connect(natsbroker.ConnOptions{MonitorURL: b.srv.MonitorURL()}), natsbroker.StreamOptions{Create: true, MaxBytes: 600})
	acked, err := publisher(t, s).Publish(t.Context(), events("a", 1, 5))
	require.ErrorIs(t, err, outbox.ErrBrokerDown)
	require.ErrorContains(t, err, "maximum bytes exceeded")
	require.Equal(t, ids(events("a", 1, acked)), b.stored(), "nothing was dropped to make room")
	require.Less(t, acked, 5)
}

func TestABrokerThatStopsIsDownAndGetsTheRestLater(t *testing.T) {
	b := newBroker(t)
	p := publisher(t, b.stream())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const lanes, each = 4, 60
	var wg sync.WaitGroup
	down := make(chan error, lanes)
	some := make(chan struct{}, lanes*each)
	for lane := range lanes {
		wg.Go(func() {
			reported := false
			for run := events(fmt.Sprint(lane), 1, each); len(run) > 0 && ctx.Err() == nil; {
				acked, err := p.Publish(ctx, run[:min(3, len(run))])
				run = run[acked:]
				some <- struct{}{}
				if err != nil && !reported {
					reported = true
					down <- err
				}
				if err != nil {
					<-time.After(tick)
				}
			}
		})
	}
	for range 8 {
		<-some
	}
	b.srv.Shutdown()
	require.ErrorIs(t, <-down, outbox.ErrBrokerDown)
	b.start()
	done := make(chan struct{})
	go func() { defer close(done); wg.Wait() }()
	for drained := false; !drained; {
		select {
		case <-some:
		case <-down:
		case <-done:
			drained = true
		}
	}
	got := map[string][]string{}
	for _, id := range b.stored() {
		lane, _, _ := strings.Cut(id, "-")
		got[lane] = append(got[lane], id)
	}
	for lane := range lanes {
		require.Equal(t, ids(events(fmt.Sprint(lane), 1, each)), got[fmt.Sprint(lane)], "stored once, in order")
	}
}

func TestNoBrokerAtTheStart(t *testing.T) {
	b := newBroker(t)
	url := b.srv.URL()
	b.srv.Shutdown()
	var log syncBuffer
	c, err := natsbroker.Connect(strings.Replace(url, "//", "//user:canary-secret@", 1), &natsbroker.ConnOptions{Logger: logTo(&log)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	p := publisher(t, streamOn(t, c, natsbroker.StreamOptions{Create: true, AcceptUnknownSync: true}))
	acked, err := p.Publish(t.Context(), events("a", 1, 1))
	require.ErrorIs(t, err, outbox.ErrBrokerDown)
	require.Zero(t, acked)
	require.NotContains(t, err.Error(), "canary-secret")
	b.start()
	publishAll(t.Context(), t, p, events("a", 1, 1))
	require.Equal(t, []string{"a-1"}, b.stored())
	require.NotContains(t, log.String(), "canary-secret")
}

func TestTheCallersCancellationIsNotTheBrokers(t *testing.T) {
	b := newBroker(t)
	p := publisher(t, b.stream())
	publishAll(t.Context(), t, p, events("a", 1, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Publish(ctx, events("a", 2, 2))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, outbox.ErrBrokerDown)
}

func TestAReconnectIsCheckedAgain(t *testing.T) {
	b := newBroker(t)
	p := publisher(t, b.stream())
	publishAll(t.Context(), t, p, events("a", 1, 1))

	js := b.js()
	str, err := js.Stream(t.Context(), "events")
	require.NoError(t, err)
	cfg := str.CachedInfo().Config
	cfg.Discard = jetstream.DiscardOld
	_, err = js.UpdateStream(t.Context(), cfg)
	require.NoError(t, err)
	b.restart()
	require.Eventually(t, func() bool {
		acked, err := p.Publish(t.Context(), events("a", 2, 2))
		require.Zero(t, acked)
		require.ErrorIs(t, err, outbox.ErrBrokerDown)
		var refused *natsbroker.NotDurableError
		return errors.As(err, &refused) && refused.Refusals[0].Setting == "discard"
	}, soon, tick)
	require.Equal(t, []string{"a-1"}, b.stored())
}

func TestHeadersReachTheBrokerAsTheyAreMeant(t *testing.T) {
	b := newBroker(t)
	e := event("a", 1)
	e.Headers = map[string]string{"note": "1\r\nNats-Rollup: all\r\n\r\nbody", "a: b\r\nNats-Msg-Id": "forged"}
	e.AggregateID = "x\r\nce-id: forged"
	publishAll(t.Context(), t, publisher(t, b.stream()), []outbox.Event{e})
	str, err := b.js().Stream(t.Context(), "events")
	require.NoError(t, err)
	msg, err := str.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, string(msg.Data))
	require.Equal(t, nats.Header{
		"Nats-Msg-Id": {"a-1"}, "ce-specversion": {"1.0"}, "ce-id": {"a-1"}, "ce-source": {"/orders"}, "ce-type": {"order.changed"},
		"ce-subject": {"x%0D%0Ace-id:%20forged"}, "ce-aggregateid": {"x%0D%0Ace-id:%20forged"}, "ce-aggregatetype": {"order"},
		"ce-aggregatesequence": {"1"}, "ce-schemaversion": {"1"}, "ce-time": {"2026-02-03T04:05:06.000000007Z"}, "content-type": {"application/json"},
		"hdr-note": {"1%0D%0ANats-Rollup:%20all%0D%0A%0D%0Abody"}, "hdr-a%3A%20b%0D%0ANats-Msg-Id": {"forged"},
	}, msg.Header)
}
