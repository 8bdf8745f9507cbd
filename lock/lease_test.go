package lock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

// over says whether a lease is, to its holder.
func over(l *lock.Lease) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// TestTheHolderKnowsFirst: the lease is counted from before it was asked for, and a little early, so that it ends here before it does in the store.
func TestTheHolderKnowsFirst(t *testing.T) {
	for lease, margin := range map[time.Duration]time.Duration{2 * time.Second: 100 * time.Millisecond, time.Hour: time.Second} {
		bubble(t, func(b *bench) {
			slow := on("acquire", func(ctx context.Context) error { return stall(ctx, 500*time.Millisecond) })
			b.store.be(slow, slow) // on the way there and back
			t0 := time.Now()
			l := b.take("k", lease)
			ctx, cancel := l.Context(b.Context())
			defer cancel()
			require.Equal(b, time.Second, time.Since(t0))
			b.pass(lease - margin - time.Second - 1)
			require.False(b, over(l))
			require.NoError(b, ctx.Err())
			b.pass(1)
			require.True(b, over(l))
			require.ErrorIs(b, context.Cause(ctx), lock.ErrLeaseExpired)
			require.False(b, b.free(), "the store still has it")
			require.Zero(b, b.meter.Get("lock.held"))
			require.NoError(b, l.Release(b.Context()), "it was given back in time")
			require.Zero(b, b.meter.Get("lock.lease.expired"))
		})
	}
}

func TestATimerThatIsLateIsNotWaitedFor(t *testing.T) {
	bubble(t, func(b *bench) {
		l := b.take("k", 2*time.Second)
		lock.Starve(l)
		b.pass(1900*time.Millisecond - 1)
		require.False(b, over(l))
		b.pass(1)
		require.True(b, over(l))
		require.NoError(b, l.Release(b.Context()))
	})
}

func TestTheContextOfALease(t *testing.T) {
	bubble(t, func(b *bench) {
		l := b.take("k", time.Minute)
		type name struct{}
		parent, cancelParent := context.WithCancelCause(context.WithValue(b.Context(), name{}, "parent"))
		byParent, cancel1 := l.Context(parent)
		byCancel, cancel2 := l.Context(parent)
		byRelease, cancel3 := l.Context(b.Context())
		require.Equal(b, "parent", byParent.Value(name{}))
		cancel2()
		require.ErrorIs(b, byCancel.Err(), context.Canceled)
		require.NoError(b, byParent.Err())
		cancelParent(errBoom)
		require.ErrorIs(b, context.Cause(byParent), errBoom)
		require.False(b, over(l))
		require.NoError(b, l.Release(b.Context()))
		synctest.Wait()
		require.ErrorIs(b, byRelease.Err(), context.Canceled)
		require.NotErrorIs(b, context.Cause(byRelease), lock.ErrLeaseExpired)
		cancel1()
		cancel3()
	})
}

func TestRelease(t *testing.T) {
	bubble(t, func(b *bench) {
		l := b.take("k", time.Minute)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		require.NoError(b, l.Release(ctx), "it works for a caller who is gone")
		require.True(b, over(l))
		require.True(b, b.free())
		next := b.take("k", time.Minute)
		for range 2 {
			require.NoError(b, l.Release(b.Context()))
		}
		require.False(b, b.free(), "the next one's is left alone")
		require.Equal(b, 1, b.store.count("release"))
		require.NoError(b, next.Release(b.Context()))
		require.Equal(b, map[string]float64{"lock.acquisition acquired": 2, "lock.wait.duration count": 2}, b.meter.Sums())
	})
}

func TestALateReleaseIsToldOnce(t *testing.T) {
	for name, taken := range map[string]bool{"nobody took it": false, "another has it": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				l := b.take("k", time.Second)
				b.pass(time.Second)
				var next *lock.Lease
				if taken {
					next = b.take("k", time.Minute)
				}
				for range 3 {
					err := l.Release(b.Context())
					require.ErrorIs(b, err, lock.ErrLeaseExpired)
					require.Equal(b, fault.LockLeaseLost, fault.CodeOf(err))
				}
				require.Equal(b, 1, b.meter.Get("lock.lease.expired"))
				require.Equal(b, 1, b.log.lines("level=WARN", "key=k", "region=DEFAULT"))
				require.Equal(b, !taken, b.free())
				if taken {
					require.NoError(b, next.Release(b.Context()))
				}
			})
		})
	}
}

// TestAReleaseWhoseAnswerIsLost may be repeated, and is not taken for a loss of the lease.
func TestAReleaseWhoseAnswerIsLost(t *testing.T) {
	bubble(t, func(b *bench) {
		l := b.take("k", time.Minute)
		b.store.be(nil, on("release", boom))
		require.ErrorIs(b, l.Release(b.Context()), errBoom)
		b.store.be(nil, nil)
		next := b.take("k", time.Minute)
		require.NoError(b, l.Release(b.Context()))
		require.False(b, b.free(), "the next one's is left alone")
		require.NoError(b, next.Release(b.Context()))

		l = b.take("k", time.Minute)
		b.store.be(on("release", boom), nil)
		require.ErrorIs(b, l.Release(b.Context()), errBoom)
		require.NotErrorIs(b, l.Release(b.Context()), lock.ErrLeaseExpired)
		b.store.be(nil, nil)
		require.NoError(b, l.Release(b.Context()))
		require.True(b, b.free())
		require.Zero(b, b.meter.Get("lock.lease.expired"))
		require.Zero(b, b.meter.Get("lock.held"))

		l = b.take("k", time.Second)
		b.pass(time.Second)
		b.store.be(nil, on("release", boom))
		for range 2 {
			err := l.Release(b.Context())
			require.ErrorIs(b, err, lock.ErrLeaseExpired, "that is known without the store")
			require.ErrorIs(b, l.Release(b.Context()), lock.ErrLeaseExpired)
		}
		b.store.be(nil, nil)
		require.ErrorIs(b, l.Release(b.Context()), lock.ErrLeaseExpired, "it stays so")
		require.Equal(b, 1, b.meter.Get("lock.lease.expired"))
	})
}

// TestCollisionsDoNotEndALease: renewing and giving back is tried again, for as long as the store is given to answer.
func TestCollisionsDoNotEndALease(t *testing.T) {
	for _, code := range []fault.Code{fault.DBSerializationFailure, fault.DBDeadlock, fault.DBLockTimeout} {
		for _, call := range []string{"renew", "release"} {
			bubble(t, func(b *bench) {
				l := b.take("k", time.Minute)
				ask := func() error {
					if call == "renew" {
						return l.Renew(b.Context(), time.Minute)
					}
					return l.Release(b.Context())
				}
				collide := func(context.Context) error { return fault.New(code, "store", nil) }
				b.store.be(on(call, collide), nil)
				time.AfterFunc(time.Second, func() { b.store.be(nil, nil) })
				require.NoError(b, ask())
				require.Greater(b, b.store.count(call), 10, "soon at first")
				require.LessOrEqual(b, b.store.count(call), 50, "after a pause")
				require.NoError(b, l.Release(b.Context()))

				l = b.take("k", time.Minute)
				b.store.be(on(call, collide), nil)
				t0 := time.Now()
				require.ErrorIs(b, ask(), code)
				require.LessOrEqual(b, time.Since(t0), time.Minute)
				b.store.be(nil, nil)
				require.NoError(b, l.Release(b.Context()))
			})
		}
	}
}

func TestAReleaseIsBounded(t *testing.T) {
	bubble(t, func(b *bench) {
		l := b.take("k", time.Minute)
		b.store.be(on("release", func(ctx context.Context) error { return stall(ctx, time.Hour) }), nil)
		t0 := time.Now()
		require.ErrorIs(b, l.Release(b.Context()), context.DeadlineExceeded)
		require.Equal(b, 5*time.Second, time.Since(t0))
		b.store.be(on("release", func(ctx context.Context) error { return stall(ctx, 4*time.Second) }), nil)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		require.NoError(b, l.Release(ctx), "it takes as long for a caller who is gone")
	})
}

// TestAReleaseDoesNotWaitForARenewal that hangs: that one is worth nothing any more. Outside of a bubble, whose clock stands while a mutex is waited for.
func TestAReleaseDoesNotWaitForARenewal(t *testing.T) {
	s := newStore()
	locker, meter, _ := newLocker(t, s, lock.Options{})
	l, err := locker.Acquire(t.Context(), "k", &lock.AcquireOptions{Lease: time.Hour})
	require.NoError(t, err)
	asked := make(chan struct{})
	s.be(on("renew", func(ctx context.Context) error {
		close(asked)
		return stall(ctx, time.Hour)
	}), nil)
	renewed, released := make(chan error, 1), make(chan error, 1)
	go func() { renewed <- l.Renew(t.Context(), time.Hour) }()
	<-asked
	go func() { released <- l.Release(t.Context()) }()
	select {
	case err := <-released:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "the release waits for the renewal")
	}
	require.Error(t, <-renewed)
	require.Zero(t, meter.Get("lock.lease.expired"))
	h, err := s.Locks.Look(t.Context(), lock.Key{Region: "DEFAULT", Name: "k"})
	require.NoError(t, err)
	require.False(t, h.Held)
}

func TestARenewalNobodyWaitsForIsNotMade(t *testing.T) {
	bubble(t, func(b *bench) {
		l := b.take("k", time.Minute)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		require.ErrorIs(b, l.Renew(ctx, time.Hour), context.Canceled)
		require.Zero(b, b.store.count("renew"))
		b.pass(time.Minute)
		require.True(b, b.free())
	})
}

func TestRenew(t *testing.T) {
	bubble(t, func(b *bench) {
		l := b.take("k", 2*time.Second)
		b.pass(time.Second)
		require.NoError(b, l.Renew(b.Context(), 10*time.Second))
		b.pass(9 * time.Second)
		require.False(b, over(l))
		require.False(b, b.free())
		require.NoError(b, l.Renew(b.Context(), 2*time.Second), "shorter is fine too")
		b.pass(1900*time.Millisecond - 1)
		require.False(b, over(l))
		b.pass(1)
		require.True(b, over(l))
		require.ErrorIs(b, l.Renew(b.Context(), time.Minute), lock.ErrLeaseExpired, "what its holder took for over stays so")
		require.NoError(b, l.Release(b.Context()))

		l = b.take("k", time.Minute)
		require.ErrorContains(b, l.Renew(b.Context(), 0), "Lease is 0s")
		require.ErrorContains(b, l.Renew(b.Context(), b.store.MaxLease()+1), "use more than 0 and up to")
		require.NoError(b, l.Release(b.Context()))
		renewals := b.store.count("renew")
		require.ErrorContains(b, l.Renew(b.Context(), time.Minute), "was released")
		require.Equal(b, renewals, b.store.count("renew"))
	})
}

// TestALostLeaseIsToldByARenewal, where the store ended it before its time.
func TestALostLeaseIsToldByARenewal(t *testing.T) {
	bubble(t, func(b *bench) {
		l := b.take("k", time.Hour)
		ctx, cancel := l.Context(b.Context())
		defer cancel()
		b.store.forget()
		require.ErrorIs(b, l.Renew(b.Context(), time.Hour), lock.ErrLeaseExpired)
		synctest.Wait()
		require.ErrorIs(b, context.Cause(ctx), lock.ErrLeaseExpired)
		require.ErrorIs(b, l.Release(b.Context()), lock.ErrLeaseExpired)
		require.Equal(b, map[string]float64{"lock.acquisition acquired": 1, "lock.wait.duration count": 1, "lock.lease.expired": 1}, b.meter.Sums())
	})
}

// TestARenewalThatFails leaves the lease as it was, or as it would be, whichever ends first.
func TestARenewalThatFails(t *testing.T) {
	for lease, left := range map[time.Duration]time.Duration{time.Hour: 10 * time.Second, 4 * time.Second: 4 * time.Second} {
		bubble(t, func(b *bench) {
			l := b.take("k", 10*time.Second)
			b.store.be(nil, on("renew", boom))
			require.ErrorIs(b, l.Renew(b.Context(), lease), errBoom)
			b.pass(left - left/20 - 1)
			require.False(b, over(l))
			b.pass(1)
			require.True(b, over(l))
		})
	}
	bubble(t, func(b *bench) { // one that hangs goes on no longer than the lease
		l := b.take("k", 10*time.Second)
		b.store.be(on("renew", func(ctx context.Context) error { return stall(ctx, time.Hour) }), nil)
		t0 := time.Now()
		require.ErrorIs(b, l.Renew(b.Context(), time.Hour), context.DeadlineExceeded)
		require.Equal(b, 9500*time.Millisecond, time.Since(t0))
	})
}

// TestNothingRenewsUnasked: a lease of which nobody says so ends, whatever its holder does.
func TestNothingRenewsUnasked(t *testing.T) {
	bubble(t, func(b *bench) {
		require.ErrorIs(b, b.Do(b.Context(), "k", &lock.AcquireOptions{Lease: time.Second}, func(ctx context.Context) error {
			b.pass(time.Minute)
			require.Error(b, ctx.Err())
			return nil
		}), lock.ErrLeaseExpired)
		require.Zero(b, b.store.count("renew"))
	})
}

func TestKeepAlive(t *testing.T) {
	start := func(ctx context.Context, l *lock.Lease) chan error {
		ended := make(chan error, 1)
		go func() { ended <- l.KeepAlive(ctx) }()
		return ended
	}
	t.Run("until the context ends", func(t *testing.T) {
		bubble(t, func(b *bench) {
			l := b.take("k", 3*time.Second)
			ctx, cancel := context.WithCancel(b.Context())
			ended := start(ctx, l)
			b.pass(time.Minute + time.Second/2)
			require.Equal(b, 60, b.store.count("renew"), "at each third")
			require.False(b, over(l))
			cancel()
			require.NoError(b, <-ended)
			b.pass(3 * time.Second)
			require.True(b, over(l))
			require.Equal(b, 60, b.store.count("renew"))
		})
	})
	t.Run("until it is released", func(t *testing.T) {
		bubble(t, func(b *bench) {
			l := b.take("k", 3*time.Second)
			ended := start(b.Context(), l)
			b.pass(10 * time.Second)
			require.NoError(b, l.Release(b.Context()))
			require.NoError(b, <-ended)
			renewals := b.store.count("renew")
			next := b.take("k", time.Minute)
			b.pass(10 * time.Second)
			require.Equal(b, renewals, b.store.count("renew"))
			require.NoError(b, next.Release(b.Context()))
		})
	})
	t.Run("until it is lost", func(t *testing.T) {
		bubble(t, func(b *bench) {
			l := b.take("k", 3*time.Second)
			ended := start(b.Context(), l)
			b.pass(500 * time.Millisecond)
			b.store.forget()
			require.ErrorIs(b, <-ended, lock.ErrLeaseExpired)
			require.True(b, over(l))
		})
	})
	t.Run("one failure is no loss", func(t *testing.T) {
		bubble(t, func(b *bench) {
			l := b.take("k", 3*time.Second)
			ended := start(b.Context(), l)
			b.store.be(on("renew", func(ctx context.Context) error { return stall(ctx, time.Hour) }), nil)
			b.pass(2100 * time.Millisecond) // the first one was given up, the second one is on its way
			require.Equal(b, 1, b.log.lines("level=WARN", "could not be renewed"))
			b.store.be(nil, nil)
			require.False(b, over(l))
			require.NoError(b, l.Release(b.Context()))
			require.NoError(b, <-ended)
		})
	})
	t.Run("a store that is gone", func(t *testing.T) {
		bubble(t, func(b *bench) {
			l := b.take("k", 3*time.Second)
			b.store.be(on("renew", boom), nil)
			t0 := time.Now()
			require.ErrorIs(b, l.KeepAlive(b.Context()), lock.ErrLeaseExpired)
			require.Equal(b, 2850*time.Millisecond, time.Since(t0))
		})
	})
}
