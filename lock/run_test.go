package lock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/lock"
)

// run has l listen until the test ends.
func (b *bench) run(l *lock.Locker) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		require.NoError(b, <-ended)
	}
}

func TestAReleaseOfAnotherProcessIsHeardAtOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		other, _, _ := newLocker(b.T, b.store, lock.Options{})
		stop := b.run(other)
		held := b.take("k", time.Minute)
		w := b.wait(b.Context(), other, 10*time.Second)
		b.pass(5*time.Second + 1)
		require.NoError(b, held.Release(b.Context()))
		<-w.done
		require.NoError(b, w.err)
		require.Equal(b, 5*time.Second+1, w.took)
		require.NoError(b, w.lease.Release(b.Context()))
		stop()
	})
}

// deaf is a store of which the listening is under test.
type deaf struct {
	*store

	listen func(ctx context.Context, ready func(), ring func(lock.Digest)) error
}

func (d deaf) Listen(ctx context.Context, ready func(), ring func(lock.Digest)) error {
	return d.listen(ctx, ready, ring)
}

func TestListeningIsTakenUpAgain(t *testing.T) {
	bubble(t, func(b *bench) {
		var mu sync.Mutex
		var began []time.Time
		times := func() []time.Time {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(began)
		}
		l, _, log := newLocker(b.T, deaf{b.store, func(ctx context.Context, ready func(), _ func(lock.Digest)) error {
			mu.Lock()
			began = append(began, time.Now())
			mu.Unlock()
			if len(times()) > 20 {
				ready()
				_ = stall(ctx, time.Second)
			}
			return errBoom
		}}, lock.Options{})
		stop := b.run(l)
		for len(times()) < 20 {
			b.pass(time.Second)
		}
		at := times()
		require.LessOrEqual(b, at[1].Sub(at[0]), 100*time.Millisecond)
		for i := 10; i < 20; i++ {
			require.LessOrEqual(b, at[i].Sub(at[i-1]), 5*time.Second)
			require.Greater(b, at[i].Sub(at[i-1]), 2*time.Second, "it does not ask what is down again and again")
		}
		for len(times()) < 22 {
			b.pass(time.Second)
		}
		at = times()
		require.LessOrEqual(b, at[21].Sub(at[20]), time.Second+100*time.Millisecond, "one that worked makes the next pause short")
		require.GreaterOrEqual(b, log.lines("level=WARN", "error=*errors.errorString"), 20)
		stop()
	})
}

// TestWhatWasMissedIsLookedFor: a release may have come just before listening began.
func TestWhatWasMissedIsLookedFor(t *testing.T) {
	bubble(t, func(b *bench) {
		begin := make(chan struct{})
		l, _, _ := newLocker(b.T, deaf{b.store, func(ctx context.Context, ready func(), _ func(lock.Digest)) error {
			<-begin
			ready()
			return stall(ctx, time.Hour)
		}}, lock.Options{Wait: 20 * time.Second, Poll: 10 * time.Second})
		stop := b.run(l)
		held := b.take("k", time.Minute)
		w := b.wait(b.Context(), l, 30*time.Second)
		require.NoError(b, held.Release(b.Context()))
		b.pass(time.Second)
		close(begin)
		<-w.done
		require.Equal(b, time.Second, w.took)
		require.NoError(b, w.lease.Release(b.Context()))
		stop()
	})
}

// A ring may be about a key that nobody waits for, or that is taken again.
func TestARingIsOnlyAHint(t *testing.T) {
	bubble(t, func(b *bench) {
		l, _, _ := newLocker(b.T, deaf{b.store, func(ctx context.Context, ready func(), ring func(lock.Digest)) error {
			ready()
			for range 100 {
				ring(lock.Digest{1})
				ring(lock.Key{Region: "DEFAULT", Name: "k"}.Digest())
			}
			return stall(ctx, time.Hour)
		}}, lock.Options{})
		held := b.take("k", time.Minute)
		w := b.wait(b.Context(), l, 2*time.Second)
		stop := b.run(l)
		<-w.done
		require.Error(b, w.err)
		require.Equal(b, 2*time.Second, w.took)
		require.NoError(b, held.Release(b.Context()))
		stop()
	})
}

// unheard hides that a driver hears.
type unheard struct{ lock.Driver }

func TestRunOfADriverThatHearsNothing(t *testing.T) {
	bubble(t, func(b *bench) {
		l, _, _ := newLocker(b.T, unheard{b.store}, lock.Options{})
		stop := b.run(l)
		b.pass(time.Hour)
		stop()
		require.Zero(b, b.store.count(""))
	})
}
