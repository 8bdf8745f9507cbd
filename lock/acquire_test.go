package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
	"caskeleton.dev/tx"
)

var errBoom = errors.New("boom")

func boom(context.Context) error { return errBoom }

func TestWithoutContentionTwoRequestsDo(t *testing.T) {
	bubble(t, func(b *bench) {
		l := b.take("k", time.Minute)
		require.Equal(b, "k", l.Key())
		require.False(b, b.free())
		require.NoError(b, l.Release(b.Context()))
		require.True(b, b.free())
		require.Equal(b, 2, b.store.count(""))
		l, err := b.Acquire(b.Context(), "k", nil)
		require.NoError(b, err)
		require.NoError(b, l.Release(b.Context()))
		require.Equal(b, 4, b.store.count(""))
		require.Zero(b, lock.Lines(b.Locker), "the process remembers a key that nobody uses")
	})
}

func TestBoundsAreRefused(t *testing.T) {
	longest := newStore().MaxLease()
	for _, c := range []struct {
		o    lock.Options
		want string
	}{
		{lock.Options{Wait: -1}, "Wait is -1ns; it must be positive, or 0 for 3s"},
		{lock.Options{Lease: -1}, "Lease is -1ns; it must be positive, or 0 for 30s"},
		{lock.Options{Poll: -1}, "Poll is -1ns; it must be positive, or 0 for 100ms"},
		{lock.Options{Lease: time.Second}, "Lease is 1s, shorter than Wait, 3s"},
		{lock.Options{Wait: time.Minute}, "Lease is 30s, shorter than Wait, 1m0s"},
		{lock.Options{Lease: longest + 1}, "use more than 0 and up to"},
	} {
		_, err := lock.New(newStore(), &c.o)
		require.ErrorContains(t, err, c.want)
	}
	_, err := lock.New(nil, nil)
	require.ErrorContains(t, err, "a driver is required")

	bubble(t, func(b *bench) {
		for _, c := range []struct {
			o    lock.AcquireOptions
			want string
		}{
			{lock.AcquireOptions{Wait: -1}, "Wait is -1ns; it must be positive, or 0 to try once"},
			{lock.AcquireOptions{Lease: -1}, "Lease is -1ns"},
			{lock.AcquireOptions{Wait: time.Minute}, "Lease is 30s, shorter than Wait, 1m0s"},
			{lock.AcquireOptions{Lease: longest + 1}, "use more than 0 and up to"},
		} {
			_, err := b.Acquire(b.Context(), "k", &c.o)
			require.ErrorContains(b, err, c.want)
		}
		require.Zero(b, b.store.count(""))
		require.NoError(b, b.take("k", longest).Release(b.Context()))
	})
}

// The defaults are found by what they do.
func TestDefaults(t *testing.T) {
	bubble(t, func(b *bench) {
		first, err := b.Acquire(b.Context(), "k", nil)
		require.NoError(b, err)
		t0 := time.Now()
		_, err = b.Acquire(b.Context(), "k", nil)
		require.ErrorIs(b, err, fault.LockAcquisitionTimeout)
		require.Equal(b, 3*time.Second, time.Since(t0))
		_, err = b.Acquire(b.Context(), "k", &lock.AcquireOptions{})
		require.ErrorIs(b, err, fault.LockAcquisitionTimeout)
		require.Equal(b, 3*time.Second, time.Since(t0), "in options that are given, no wait is none")
		h, err := b.store.Locks.Look(b.Context(), lock.Key{Region: "DEFAULT", Name: "k"})
		require.NoError(b, err)
		require.Equal(b, 27*time.Second, h.Left)
		require.NoError(b, first.Release(b.Context()))
		second := b.take("k", 0)
		h, err = b.store.Locks.Look(b.Context(), lock.Key{Region: "DEFAULT", Name: "k"})
		require.NoError(b, err)
		require.Equal(b, 30*time.Second, h.Left)
		require.NoError(b, second.Release(b.Context()))
	})
}

func TestNoWaitTriesOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		held := b.take("k", time.Minute)
		t0 := time.Now()
		_, err := b.Acquire(b.Context(), "k", &lock.AcquireOptions{})
		require.ErrorIs(b, err, fault.LockAcquisitionTimeout)
		require.True(b, fault.Retryable(err))
		require.Equal(b, 409, fault.StatusOf(err))
		require.Zero(b, time.Since(t0))
		require.Equal(b, 2, b.store.count(""))
		require.NoError(b, held.Release(b.Context()))
	})
}

// A crashed holder is one that never releases.
func TestACrashedHolderIsNoObstacle(t *testing.T) {
	bubble(t, func(b *bench) {
		b.take("k", time.Minute)
		b.pass(time.Minute - 1)
		_, err := b.Acquire(b.Context(), "k", &lock.AcquireOptions{})
		require.ErrorIs(b, err, fault.LockAcquisitionTimeout)
		b.pass(1)
		require.NoError(b, b.take("k", time.Minute).Release(b.Context()))
	})
}

func TestTheWaitEndsExactly(t *testing.T) {
	for _, wait := range []time.Duration{1, time.Millisecond, 99 * time.Millisecond, 7 * time.Second} {
		bubble(t, func(b *bench) {
			held := b.take("k", time.Minute)
			t0 := time.Now()
			_, err := b.Acquire(b.Context(), "k", &lock.AcquireOptions{Wait: wait})
			require.ErrorIs(b, err, fault.LockAcquisitionTimeout)
			require.Equal(b, wait, time.Since(t0))
			require.NoError(b, held.Release(b.Context()))
		})
	}
}

func TestAWaitShorterThanAPollLooksToo(t *testing.T) {
	bubble(t, func(b *bench) {
		other, _, _ := newLocker(b.T, b.store, lock.Options{})
		held := b.take("k", time.Minute)
		time.AfterFunc(20*time.Millisecond, func() { _ = held.Release(b.Context()) })
		l, err := other.Acquire(b.Context(), "k", &lock.AcquireOptions{Wait: 50 * time.Millisecond, Lease: time.Minute})
		require.NoError(b, err)
		require.NoError(b, l.Release(b.Context()))
	})
}

func TestCancellationEndsAWaitAtOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		held := b.take("k", time.Minute)
		for _, others := range []int{0, 1} { // the one that is cancelled asks the store, or waits behind one that does
			ctx, cancel := context.WithCancelCause(b.Context())
			time.AfterFunc(time.Second, func() { cancel(errBoom) })
			behind := make(chan error, 1)
			if others == 1 {
				go func() {
					_, err := b.Acquire(b.Context(), "k", &lock.AcquireOptions{Wait: 10 * time.Second, Lease: time.Minute})
					behind <- err
				}()
				synctest.Wait()
			}
			t0 := time.Now()
			_, err := b.Acquire(ctx, "k", &lock.AcquireOptions{Wait: 10 * time.Second})
			require.ErrorIs(b, err, context.Canceled)
			require.ErrorIs(b, err, errBoom, "the cause is kept")
			require.Equal(b, time.Second, time.Since(t0))
			if others == 1 {
				require.ErrorIs(b, <-behind, fault.LockAcquisitionTimeout)
			}
		}
		require.NoError(b, held.Release(b.Context()))
		require.True(b, b.free())
		calls := b.store.count("")
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		_, err := b.Acquire(ctx, "k", nil)
		require.ErrorIs(b, err, context.Canceled)
		require.Equal(b, calls, b.store.count(""))
		require.Equal(b, 3, b.meter.Get("lock.acquisition canceled"))
	})
}

func TestACallersDeadlineEndsAWait(t *testing.T) {
	bubble(t, func(b *bench) {
		held := b.take("k", time.Minute)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		_, err := b.Acquire(ctx, "k", nil)
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.NotErrorIs(b, err, fault.LockAcquisitionTimeout)
		require.Equal(b, 1, b.meter.Get("lock.acquisition canceled"))
		require.NoError(b, held.Release(b.Context()))
	})
}

func TestRegionsAndKeysAreExact(t *testing.T) {
	bubble(t, func(b *bench) {
		other, _, _ := newLocker(b.T, b.store, lock.Options{Region: "other"})
		var leases []*lock.Lease
		for _, key := range []string{"", "k", "K", "k ", "0", "641", "k\x00"} { // 0 and 641 once shared a stripe
			leases = append(leases, b.take(key, time.Minute))
			l, err := other.Acquire(b.Context(), key, &lock.AcquireOptions{})
			require.NoError(b, err)
			leases = append(leases, l)
		}
		for _, l := range leases {
			require.NoError(b, l.Release(b.Context()))
		}
	})
}

// noConn is a driver of transactions that do nothing.
type noConn struct{ tx.Conn }

func (noConn) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) { return noConn{}, nil }
func (noConn) Commit(context.Context) error                            { return nil }
func (noConn) Rollback(context.Context) error                          { return nil }

func TestInsideATransactionIsRefused(t *testing.T) {
	bubble(t, func(b *bench) {
		r, err := tx.NewRunner(noConn{}, nil)
		require.NoError(b, err)
		held := b.take("held", time.Minute)
		var after context.Context
		require.NoError(b, r.InWrite(b.Context(), func(ctx context.Context, _ *tx.Tx) error {
			after = context.WithoutCancel(ctx) //nolint:fatcontext // it outlives the transaction, as what a caller keeps may
			calls := b.store.count("")
			_, err := b.Acquire(ctx, "k", nil)
			require.ErrorIs(b, err, lock.ErrInsideTransaction)
			require.ErrorIs(b, b.Do(ctx, "k", nil, func(context.Context) error { panic("it ran") }), lock.ErrInsideTransaction)
			require.ErrorIs(b, held.Release(ctx), lock.ErrInsideTransaction)
			require.Equal(b, calls, b.store.count(""))
			require.Equal(b, 2, b.meter.Get("lock.acquisition error"))
			select {
			case <-held.Done():
				b.Error("a release that was refused ended the lease")
			default:
			}
			require.NoError(b, held.Renew(ctx, time.Minute), "the lease may be renewed while a transaction is open")
			return nil
		}))
		require.NoError(b, held.Release(after), "the transaction has ended")
		require.NoError(b, b.Do(after, "held", nil, func(context.Context) error { return nil }))
	})
}

func TestNotReentrant(t *testing.T) {
	bubble(t, func(b *bench) {
		other, _, _ := newLocker(b.T, b.store, lock.Options{Region: "other"})
		outer := b.take("outer", time.Minute)
		ctx, cancel := outer.Context(b.Context())
		defer cancel()
		require.NoError(b, b.Do(ctx, "inner", nil, func(ctx context.Context) error {
			calls, t0 := b.store.count(""), time.Now()
			for _, key := range []string{"outer", "inner"} {
				_, err := b.Acquire(context.WithoutCancel(ctx), key, nil)
				require.ErrorIs(b, err, lock.ErrAlreadyHeld)
			}
			require.Zero(b, time.Since(t0))
			require.Equal(b, calls, b.store.count(""))
			return other.Do(ctx, "outer", nil, func(context.Context) error { return nil })
		}))
		_, err := b.Acquire(b.Context(), "outer", &lock.AcquireOptions{})
		require.ErrorIs(b, err, fault.LockAcquisitionTimeout, "another context is another caller")
		require.NoError(b, outer.Release(b.Context()))
		l, err := b.Acquire(context.WithoutCancel(ctx), "outer", nil)
		require.NoError(b, err, "the lease of the context holds it no more")
		require.NoError(b, l.Release(b.Context()))
	})
}
