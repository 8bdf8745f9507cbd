package outbox_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/testkit/meter"
	"caskeleton.dev/outbox"
)

// broker is a publisher that notes what it stores, and when.
type broker struct {
	mu     sync.Mutex
	stored []outbox.Event
	at     []time.Time
	runs   int
	fn     func(ctx context.Context, run []outbox.Event) (int, error) // nil stores everything
}

func (b *broker) Publish(ctx context.Context, run []outbox.Event) (int, error) {
	b.mu.Lock()
	b.runs++
	fn := b.fn
	b.mu.Unlock()
	n := len(run)
	var err error
	if fn != nil {
		n, err = fn(ctx, run)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range run[:min(max(n, 0), len(run))] {
		b.stored, b.at = append(b.stored, e), append(b.at, time.Now())
	}
	return n, err
}

func (b *broker) be(fn func(ctx context.Context, run []outbox.Event) (int, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fn = fn
}

// ids returns what was stored, in order.
func (b *broker) ids() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := []string{}
	for _, e := range b.stored {
		ids = append(ids, e.ID)
	}
	return ids
}

func (b *broker) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.runs
}

// bench is a relay under test with what surrounds it.
type bench struct {
	*testing.T
	store  *store
	broker *broker
	opts   outbox.RelayOptions
	meter  *meter.Meter
	log    *syncBuffer
	cancel context.CancelFunc
	ended  chan error
}

// relay runs f in a bubble, with a relay that f starts.
func relay(t *testing.T, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, store: newStore(), broker: &broker{}, meter: meter.New("reason"), log: &syncBuffer{}}
		b.opts = outbox.RelayOptions{Bell: outbox.NewBell(), Meter: b.meter, Logger: slog.New(slog.NewTextHandler(b.log, nil))}
		f(b)
		if b.cancel != nil {
			b.stop()
		}
	})
}

func (b *bench) start() {
	b.Helper()
	r, err := outbox.NewRelay(b.store, b.broker, &b.opts)
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	b.cancel, b.ended = cancel, make(chan error, 1)
	go func() { b.ended <- r.Run(ctx) }()
	synctest.Wait()
}

// stop ends the relay and checks that nothing of it is left.
func (b *bench) stop() {
	b.Helper()
	b.cancel()
	require.NoError(b, <-b.ended)
	b.cancel = nil
	synctest.Wait()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	require.NotContains(b, string(stacks), "caskeleton.dev/outbox.(*", "a goroutine outlived Run")
}

// pass lets virtual time go by.
func (b *bench) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// logged counts the log lines with all of the words.
func (b *bench) logged(words ...string) int {
	n := 0
lines:
	for line := range strings.Lines(b.log.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		n++
	}
	return n
}

var quiet = slog.New(slog.DiscardHandler)

// stall waits for d of virtual time, or for ctx.
func stall(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

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
