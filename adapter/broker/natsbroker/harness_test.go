package natsbroker_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/adapter/broker/natsbroker/embedded"
	"caskeleton.dev/outbox"
)

const (
	soon = 20 * time.Second // bounds what should happen; nothing waits that long
	tick = 5 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// syncBuffer is a log that a test reads while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func logTo(b *syncBuffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// broker is an embedded server that can be stopped and started again at the same address.
type broker struct {
	t    *testing.T
	opts embedded.Options
	srv  *embedded.Server
}

func newBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{t: t, opts: embedded.Options{DataDir: t.TempDir(), Addr: "127.0.0.1:0", MonitorAddr: "127.0.0.1:0"}}
	b.start()
	b.opts.Addr = strings.TrimPrefix(b.srv.URL(), "nats://")
	b.opts.MonitorAddr = strings.TrimPrefix(b.srv.MonitorURL(), "http://")
	t.Cleanup(func() { b.srv.Shutdown() })
	return b
}

func (b *broker) start() {
	b.t.Helper()
	var err error
	b.srv, err = embedded.Start(b.t.Context(), b.opts)
	require.NoError(b.t, err)
}

func (b *broker) restart() {
	b.t.Helper()
	b.srv.Shutdown()
	b.start()
}

// connect returns a connection over TCP, which outlives restarts of the broker.
func (b *broker) connect(o natsbroker.ConnOptions) *natsbroker.Conn {
	b.t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := natsbroker.Connect(b.srv.URL(), &o)
	require.NoError(b.t, err)
	b.t.Cleanup(c.Close)
	return c
}

// stream returns a stream on a connection of its own.
func (b *broker) stream() *natsbroker.Stream {
	b.t.Helper()
	return streamOn(b.t, b.connect(natsbroker.ConnOptions{MonitorURL: b.srv.MonitorURL()}), natsbroker.StreamOptions{Create: true})
}

func streamOn(t *testing.T, c *natsbroker.Conn, o natsbroker.StreamOptions) *natsbroker.Stream {
	t.Helper()
	s, err := natsbroker.NewStream(c, &o)
	require.NoError(t, err)
	return s
}

func publisher(t *testing.T, s *natsbroker.Stream) *natsbroker.Publisher {
	t.Helper()
	p, err := natsbroker.NewPublisher(s, &natsbroker.PublisherOptions{Source: "/orders"})
	require.NoError(t, err)
	return p
}

// js looks at the broker past the code under test.
func (b *broker) js() jetstream.JetStream {
	b.t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(b.srv))
	require.NoError(b.t, err)
	b.t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(b.t, err)
	return js
}

// stored returns the ids of the messages in the stream, in its order.
func (b *broker) stored() []string {
	b.t.Helper()
	str, err := b.js().Stream(b.t.Context(), "events")
	require.NoError(b.t, err)
	info, err := str.Info(b.t.Context())
	require.NoError(b.t, err)
	var ids []string
	for seq := max(1, info.State.FirstSeq); seq <= info.State.LastSeq; seq++ {
		m, err := str.GetMsg(b.t.Context(), seq)
		require.NoError(b.t, err)
		ids = append(ids, m.Header.Get(nats.MsgIdHdr))
	}
	return ids
}

// event returns the n-th event of an order.
func event(order string, n int) outbox.Event {
	return outbox.Event{
		ID: fmt.Sprintf("%s-%d", order, n), Type: "order.changed", AggregateType: "order", AggregateID: order, Sequence: int64(n),
		Payload: fmt.Appendf(nil, `{"n":%d}`, n), OccurredAt: time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC),
	}
}

func events(order string, from, to int) []outbox.Event {
	var run []outbox.Event
	for n := from; n <= to; n++ {
		run = append(run, event(order, n))
	}
	return run
}

func ids(run []outbox.Event) []string {
	var all []string
	for _, e := range run {
		all = append(all, e.ID)
	}
	return all
}

// publishAll publishes a run as a relay would: again from the first that was not acknowledged, until all are.
func publishAll(ctx context.Context, t require.TestingT, p outbox.Publisher, run []outbox.Event) {
	require.Eventually(t, func() bool {
		acked, err := p.Publish(ctx, run)
		run = run[acked:]
		return err == nil && len(run) == 0
	}, soon, 20*time.Millisecond)
}
