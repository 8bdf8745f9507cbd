package lock_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/internal/testkit/meter"
	"caskeleton.dev/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is the driver in memory with what a test makes of its calls.
type store struct {
	*memory.Locks

	mu    sync.Mutex
	calls map[string]int
	// before is asked before a call takes effect, after once it has, with the call's name; an error is the answer.
	before, after func(ctx context.Context, call string) error
}

func newStore() *store { return &store{Locks: memory.NewLocks(nil), calls: map[string]int{}} }

// around runs one call.
func around[T any](ctx context.Context, s *store, name string, request func() (T, error)) (T, error) {
	s.mu.Lock()
	s.calls[name]++
	before, after := s.before, s.after
	s.mu.Unlock()
	var zero T
	if before != nil {
		if err := before(ctx, name); err != nil {
			return zero, err
		}
	}
	v, err := request()
	if after != nil && err == nil {
		if err := after(ctx, name); err != nil {
			return zero, err
		}
	}
	return v, err
}

func (s *store) Acquire(ctx context.Context, k lock.Key, t lock.Token, lease time.Duration, waiting bool) (lock.Holder, error) {
	return around(ctx, s, "acquire", func() (lock.Holder, error) { return s.locks().Acquire(ctx, k, t, lease, waiting) })
}

func (s *store) Look(ctx context.Context, k lock.Key) (lock.Holder, error) {
	return around(ctx, s, "look", func() (lock.Holder, error) { return s.locks().Look(ctx, k) })
}

func (s *store) Renew(ctx context.Context, k lock.Key, t lock.Token, lease time.Duration) (bool, error) {
	return around(ctx, s, "renew", func() (bool, error) { return s.locks().Renew(ctx, k, t, lease) })
}

func (s *store) Release(ctx context.Context, k lock.Key, t lock.Token) (lock.Freed, error) {
	return around(ctx, s, "release", func() (lock.Freed, error) { return s.locks().Release(ctx, k, t) })
}

func (s *store) MaxLease() time.Duration { return s.locks().MaxLease() }

// be sets what the calls meet from now on.
func (s *store) be(before, after func(ctx context.Context, call string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// forget has nobody hold anything any more.
func (s *store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Locks = memory.NewLocks(nil)
}

func (s *store) locks() *memory.Locks {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Locks
}

// count returns how often a call was made; "" stands for all.
func (s *store) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call != "" {
		return s.calls[call]
	}
	n := 0
	for _, c := range s.calls {
		n += c
	}
	return n
}

// on has a hook apply to one kind of call.
func on(call string, hook func(ctx context.Context) error) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		if name != call {
			return nil
		}
		return hook(ctx)
	}
}

// stall lets d go by, or the rest of ctx.
func stall(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bench is a locker under test with what surrounds it.
type bench struct {
	*testing.T

	store *store
	meter *meter.Meter
	log   *syncBuffer
	*lock.Locker
}

// bubble runs test in a bubble where time is its own.
func bubble(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, store: newStore()}
		b.Locker, b.meter, b.log = newLocker(t, b.store, lock.Options{})
		test(b)
	})
}

func newLocker(t *testing.T, d lock.Driver, o lock.Options) (*lock.Locker, *meter.Meter, *syncBuffer) {
	t.Helper()
	m, log := meter.New("outcome"), &syncBuffer{}
	o.Meter, o.Logger = m, slog.New(slog.NewTextHandler(log, nil))
	l, err := lock.New(d, &o)
	require.NoError(t, err)
	return l, m, log
}

// take acquires a free key, and fails unless that works.
func (b *bench) take(key string, lease time.Duration) *lock.Lease {
	b.Helper()
	l, err := b.Acquire(b.Context(), key, &lock.AcquireOptions{Lease: lease})
	require.NoError(b, err)
	return l
}

// free says whether the store has nobody hold "k".
func (b *bench) free() bool {
	b.Helper()
	h, err := b.store.Locks.Look(b.Context(), lock.Key{Region: "DEFAULT", Name: "k"})
	require.NoError(b, err)
	return !h.Held
}

// pass lets d go by.
func (b *bench) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// lines counts the lines that hold all of texts.
func (b *syncBuffer) lines(texts ...string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for line := range strings.Lines(b.String()) {
		found := true
		for _, text := range texts {
			found = found && strings.Contains(line, text)
		}
		if found {
			n++
		}
	}
	return n
}
