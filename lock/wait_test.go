package lock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

// waiter acquires beside the test, and tells when.
type waiter struct {
	lease *lock.Lease
	err   error
	took  time.Duration
	done  chan struct{}
}

func (b *bench) wait(ctx context.Context, l *lock.Locker, wait time.Duration) *waiter {
	w := &waiter{done: make(chan struct{})}
	t0 := time.Now()
	go func() {
		defer close(w.done)
		w.lease, w.err = l.Acquire(ctx, "k", &lock.AcquireOptions{Wait: wait, Lease: time.Minute})
		w.took = time.Since(t0)
	}()
	synctest.Wait()
	return w
}

func TestALocalReleaseIsHeardAtOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		held := b.take("k", time.Minute)
		w := b.wait(b.Context(), b.Locker, 10*time.Second)
		b.pass(5*time.Second + 1)
		require.NoError(b, held.Release(b.Context()))
		<-w.done
		require.NoError(b, w.err)
		require.Equal(b, 5*time.Second+1, w.took)
		require.NoError(b, w.lease.Release(b.Context()))
	})
}

func TestAReleaseNobodyHearsIsFoundByPolling(t *testing.T) {
	bubble(t, func(b *bench) {
		other, _, _ := newLocker(b.T, b.store, lock.Options{Poll: 80 * time.Millisecond})
		held := b.take("k", time.Minute)
		w := b.wait(b.Context(), other, 10*time.Second)
		writes := b.store.count("acquire")
		b.pass(5*time.Second + 1)
		require.Equal(b, writes, b.store.count("acquire"), "polling wrote")
		looks := b.store.count("look")
		require.GreaterOrEqual(b, looks, 62, "a look each 80 ms at least")
		require.LessOrEqual(b, looks, 125, "and each 40 ms at most")
		require.NoError(b, held.Release(b.Context()))
		<-w.done
		require.NoError(b, w.err)
		require.LessOrEqual(b, w.took, 5*time.Second+1+80*time.Millisecond)
		require.NoError(b, w.lease.Release(b.Context()))
	})
}

// Jitter keeps apart those who began to wait together.
func TestPollsAreSpread(t *testing.T) {
	bubble(t, func(b *bench) {
		held := b.take("k", time.Minute)
		var mu sync.Mutex
		at := map[time.Time]bool{}
		b.store.be(on("look", func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			at[time.Now()] = true
			return nil
		}), nil)
		ctx, cancel := context.WithCancel(b.Context())
		var all []*waiter
		for range 20 {
			l, _, _ := newLocker(b.T, b.store, lock.Options{})
			all = append(all, b.wait(ctx, l, 10*time.Second))
		}
		b.pass(100 * time.Millisecond)
		cancel()
		for _, w := range all {
			<-w.done
		}
		require.Greater(b, len(at), 10)
		require.NoError(b, held.Release(b.Context()))
	})
}

func TestAnExpiryIsFoundWhenItIsDue(t *testing.T) {
	bubble(t, func(b *bench) {
		other, _, _ := newLocker(b.T, b.store, lock.Options{Wait: 5 * time.Second, Poll: 5 * time.Second})
		b.take("k", 2*time.Second)
		w := b.wait(b.Context(), other, 10*time.Second)
		<-w.done
		require.NoError(b, w.err)
		require.Equal(b, 2*time.Second, w.took)
		require.NoError(b, w.lease.Release(b.Context()))
	})
}

// TestANewHolderIsToldOfAWaiter: it took the key without knowing of the one who has waited all along.
func TestANewHolderIsToldOfAWaiter(t *testing.T) {
	bubble(t, func(b *bench) {
		k := lock.Key{Region: "DEFAULT", Name: "k"}
		held := b.take("k", time.Minute)
		w := b.wait(b.Context(), b.Locker, 10*time.Second)
		b.store.be(on("acquire", func(context.Context) error { return fault.New(fault.DBDeadlock, "store.Acquire", nil) }), nil) // it loses the race
		require.NoError(b, held.Release(b.Context()))
		synctest.Wait()
		token := lock.Token{1}
		_, err := b.store.Locks.Acquire(b.Context(), k, token, time.Minute, false)
		require.NoError(b, err)
		b.store.be(nil, nil)
		b.pass(200 * time.Millisecond)
		h, err := b.store.Locks.Look(b.Context(), k)
		require.NoError(b, err)
		require.True(b, h.Contended)
		writes := b.store.count("acquire")
		b.pass(time.Second)
		require.Equal(b, writes, b.store.count("acquire"), "it is marked once")
		_, err = b.store.Locks.Release(b.Context(), k, token)
		require.NoError(b, err)
		<-w.done
		require.NoError(b, w.err)
		require.NoError(b, w.lease.Release(b.Context()))
	})
}

func TestFirstComeFirstServed(t *testing.T) {
	bubble(t, func(b *bench) {
		held := b.take("k", time.Minute)
		var all []*waiter
		for range 5 {
			all = append(all, b.wait(b.Context(), b.Locker, 30*time.Second))
		}
		require.NoError(b, held.Release(b.Context()))
		for i, w := range all {
			<-w.done
			require.NoError(b, w.err)
			b.pass(time.Second)
			require.Equal(b, time.Duration(i)*time.Second, w.took)
			require.NoError(b, w.lease.Release(b.Context()))
		}
		synctest.Wait()
		require.Zero(b, lock.Lines(b.Locker))
	})
}

// TestAHeadThatLeavesPassesItsPlaceOn, be it by its time, its caller or the store.
func TestAHeadThatLeavesPassesItsPlaceOn(t *testing.T) {
	for name, leave := range map[string]func(b *bench, cancel func()){
		"its wait has passed": func(b *bench, _ func()) { b.pass(10 * time.Second) },
		"its caller is gone":  func(_ *bench, cancel func()) { cancel() },
		"the store fails it": func(b *bench, _ func()) {
			once := sync.OnceValue(func() error { return errBoom })
			failed := false
			b.store.be(on("look", func(context.Context) error {
				if failed {
					return nil
				}
				failed = true
				return once()
			}), nil)
			b.pass(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				held := b.take("k", time.Minute)
				ctx, cancel := context.WithCancel(b.Context())
				first := b.wait(ctx, b.Locker, 10*time.Second)
				gone := b.wait(ctx, b.Locker, 9*time.Second) // leaves from the middle of the line, in the first two cases
				second := b.wait(b.Context(), b.Locker, 30*time.Second)
				leave(b, cancel)
				<-first.done
				require.Error(b, first.err)
				cancel()
				<-gone.done
				require.Error(b, gone.err)
				b.pass(time.Second)
				t0 := time.Now()
				require.NoError(b, held.Release(b.Context()))
				<-second.done
				require.NoError(b, second.err)
				require.Zero(b, time.Since(t0), "it hears of the release as the first one would have")
				require.NoError(b, second.lease.Release(b.Context()))
			})
		})
	}
}

// TestWaitersOfAProcessCostWhatOneCosts counts requests per hand-over among 200 waiters.
func TestWaitersOfAProcessCostWhatOneCosts(t *testing.T) {
	bubble(t, func(b *bench) {
		const n = 200
		held := b.take("k", time.Minute)
		var waiting sync.WaitGroup
		errs := make(chan error, n)
		for range n {
			waiting.Go(func() {
				errs <- b.Do(b.Context(), "k", &lock.AcquireOptions{Wait: time.Minute, Lease: time.Minute}, func(ctx context.Context) error {
					return stall(ctx, 10*time.Millisecond)
				})
			})
		}
		synctest.Wait()
		before := b.store.count("")
		require.LessOrEqual(b, before, 3, "one of them asks")
		require.NoError(b, held.Release(b.Context()))
		waiting.Wait()
		for range n {
			require.NoError(b, <-errs)
		}
		require.LessOrEqual(b, b.store.count("")-before, 3*n+1, "one to get it, one of the next in line to wait, one to give it back")
	})
}

// A store's error is no contention: it is told at once, and nothing remembers it.
func TestAnErrorOfTheStoreIsToldAtOnce(t *testing.T) {
	for _, call := range []string{"acquire", "look"} {
		bubble(t, func(b *bench) {
			held := b.take("k", time.Minute)
			w := b.wait(b.Context(), b.Locker, 10*time.Second)
			b.store.be(on(call, boom), nil)
			if call == "acquire" {
				require.NoError(b, held.Release(b.Context()))
			}
			b.pass(100 * time.Millisecond)
			<-w.done
			require.ErrorIs(b, w.err, errBoom)
			require.Equal(b, 1, b.meter.Get("lock.acquisition error"))
			b.store.be(nil, nil)
			require.NoError(b, held.Release(b.Context()))
			require.NoError(b, b.take("k", time.Minute).Release(b.Context()))
		})
	}
}

// What a store calls a collision is contention: it is tried again, and the wait ends all the same.
func TestCollisionsAreContention(t *testing.T) {
	for _, code := range []fault.Code{fault.DBSerializationFailure, fault.DBDeadlock, fault.DBLockTimeout} {
		collide := func(context.Context) error { return fault.New(code, "store.Acquire", nil) }
		bubble(t, func(b *bench) {
			b.store.be(on("acquire", collide), nil)
			w := b.wait(b.Context(), b.Locker, 3*time.Second)
			<-w.done
			require.ErrorIs(b, w.err, fault.LockAcquisitionTimeout)
			require.Equal(b, 3*time.Second, w.took)
			require.LessOrEqual(b, b.store.count(""), 121, "it is tried again after a pause")
			_, err := b.Acquire(b.Context(), "k", &lock.AcquireOptions{})
			require.ErrorIs(b, err, fault.LockAcquisitionTimeout)

			w = b.wait(b.Context(), b.Locker, 3*time.Second)
			b.pass(time.Second)
			b.store.be(on("look", collide), nil)
			b.pass(time.Second)
			b.store.be(nil, nil)
			<-w.done
			require.NoError(b, w.err)
			require.LessOrEqual(b, w.took, 2*time.Second+100*time.Millisecond)
			require.NoError(b, w.lease.Release(b.Context()))
		})
	}
}

// The wait may end within a try, which then says nothing of the collisions before.
func TestCollisionsAreContentionToTheLastTry(t *testing.T) {
	bubble(t, func(b *bench) {
		began := time.Now()
		b.store.be(on("acquire", func(ctx context.Context) error {
			if time.Since(began) < 2900*time.Millisecond {
				return fault.New(fault.DBSerializationFailure, "store.Acquire", nil)
			}
			<-ctx.Done()
			return fault.New(fault.DBStatementTimeout, "store.Acquire", ctx.Err())
		}), nil)
		w := b.wait(b.Context(), b.Locker, 3*time.Second)
		<-w.done
		require.ErrorIs(b, w.err, fault.LockAcquisitionTimeout)
		require.Equal(b, 3*time.Second, w.took)
	})
}

// TestAnAnswerThatIsLostLeavesNothing: the store granted, and the caller was told that it failed.
func TestAnAnswerThatIsLostLeavesNothing(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.be(nil, on("acquire", boom))
		_, err := b.Acquire(b.Context(), "k", nil)
		require.ErrorIs(b, err, errBoom)
		require.True(b, b.free())
		require.Equal(b, map[string]float64{"lock.acquisition error": 1, "lock.wait.duration count": 1}, b.meter.Sums())
		b.store.be(nil, nil)
		require.NoError(b, b.take("k", time.Minute).Release(b.Context()))
	})
}

// TestACancelledRequestLeavesNothing: it goes on for a while without its caller, and what it gets is given back.
func TestACancelledRequestLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct{ answer, want time.Duration }{
		"a quick answer is waited for":   {200 * time.Millisecond, 200 * time.Millisecond},
		"a slow one is so for 1 s":       {time.Hour, 100*time.Millisecond + time.Second},
		"and one that came before, used": {50 * time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.store.be(nil, on("acquire", func(ctx context.Context) error { return stall(ctx, c.answer) }))
				ctx, cancel := context.WithCancel(b.Context())
				time.AfterFunc(100*time.Millisecond, cancel)
				t0 := time.Now()
				l, err := b.Acquire(ctx, "k", &lock.AcquireOptions{Wait: 10 * time.Second})
				if c.answer < 100*time.Millisecond {
					require.NoError(b, err)
					require.NoError(b, l.Release(ctx))
					return
				}
				require.ErrorIs(b, err, context.Canceled)
				require.Equal(b, c.want, time.Since(t0))
				require.True(b, b.free())
				require.Equal(b, map[string]float64{
					"lock.acquisition canceled": 1, "lock.wait.duration count": 1, "lock.wait.duration sum": c.want.Seconds(),
				}, b.meter.Sums())
			})
		})
	}
}

// A store that does not answer is bounded: by the wait, or 1 s, and 1 s for giving back.
func TestAStoreThatHangs(t *testing.T) {
	hang := func(ctx context.Context, _ string) error { return stall(ctx, time.Hour) }
	for _, wait := range []time.Duration{0, 10 * time.Millisecond, 5 * time.Second} {
		bubble(t, func(b *bench) {
			b.store.be(hang, nil)
			first := b.wait(b.Context(), b.Locker, wait)
			second := b.wait(b.Context(), b.Locker, wait)
			<-first.done
			require.ErrorIs(b, first.err, context.DeadlineExceeded)
			require.NotErrorIs(b, first.err, fault.LockAcquisitionTimeout, "nothing says that another holds it")
			require.Equal(b, max(wait, time.Second)+time.Second, first.took)
			<-second.done
			require.Error(b, second.err)
			require.LessOrEqual(b, second.took, max(wait, time.Second)+time.Second)
			require.NotZero(b, b.log.lines("level=WARN", "could not be given back", "key=k"))
			b.store.be(nil, nil)
			require.NoError(b, b.take("k", time.Minute).Release(b.Context()), "it recovers")
		})
	}
	bubble(t, func(b *bench) { // it hangs once it has been seen held
		held := b.take("k", time.Minute)
		w := b.wait(b.Context(), b.Locker, 3*time.Second)
		b.store.be(hang, nil)
		<-w.done
		require.ErrorIs(b, w.err, fault.LockAcquisitionTimeout)
		require.LessOrEqual(b, w.took, 5*time.Second)
		b.store.be(nil, nil)
		require.NoError(b, held.Release(b.Context()))
	})
}

func TestAnAnswerLaterThanTheLeaseIsNone(t *testing.T) {
	bubble(t, func(b *bench) {
		b.store.be(nil, on("acquire", func(ctx context.Context) error { return stall(ctx, 600*time.Millisecond) }))
		_, err := b.Acquire(b.Context(), "k", &lock.AcquireOptions{Lease: 600 * time.Millisecond})
		require.ErrorContains(b, err, "took longer than the lease")
		require.Equal(b, 1, b.store.count("release"))
		require.True(b, b.free())
		require.Zero(b, b.meter.Get("lock.held"))
	})
}

func TestOutcomesAreCountedOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		held := b.take("k", time.Minute)
		_, err := b.Acquire(b.Context(), "k", &lock.AcquireOptions{Wait: 2 * time.Second})
		require.ErrorIs(b, err, fault.LockAcquisitionTimeout)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err = b.Acquire(ctx, "k", nil)
		require.Error(b, err)
		_, err = b.Acquire(b.Context(), "k", &lock.AcquireOptions{Wait: -1})
		require.Error(b, err)
		require.Equal(b, map[string]float64{
			"lock.acquisition acquired": 1, "lock.acquisition timeout": 1, "lock.acquisition canceled": 1, "lock.acquisition error": 1,
			"lock.wait.duration count": 4, "lock.wait.duration sum": 3, "lock.held": 1,
		}, b.meter.Sums())
		require.NoError(b, held.Release(b.Context()))
		require.Zero(b, b.meter.Get("lock.held"))
		require.Zero(b, b.log.lines("level="), "contention is nothing to log")
	})
}
