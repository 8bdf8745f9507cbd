package lock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/lock"
	"caskeleton.dev/tx"
)

func TestDoHoldsWhileItRuns(t *testing.T) {
	bubble(t, func(b *bench) {
		require.NoError(b, b.Do(b.Context(), "k", nil, func(ctx context.Context) error {
			require.False(b, b.free())
			require.NoError(b, ctx.Err())
			return nil
		}))
		require.True(b, b.free())
		require.ErrorIs(b, b.Do(b.Context(), "k", nil, boom), errBoom)
		require.True(b, b.free())
	})
}

// committed is a driver of transactions that looks at the lock as one commits.
type committed struct {
	noConn

	b *bench
	n *int
}

func (c committed) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) { return c, nil }

func (c committed) Commit(context.Context) error {
	*c.n++
	require.False(c.b, c.b.free(), "it was given back before the commit that it protects")
	return nil
}

func TestDoReleasesAfterTheCommit(t *testing.T) {
	bubble(t, func(b *bench) {
		commits := 0
		r, err := tx.NewRunner(committed{b: b, n: &commits}, nil)
		require.NoError(b, err)
		require.NoError(b, b.Do(b.Context(), "k", nil, func(ctx context.Context) error {
			return r.InWrite(ctx, func(context.Context, *tx.Tx) error { return nil })
		}))
		require.Equal(b, 1, commits)
		require.True(b, b.free())
	})
}

func TestDoReleasesWhateverHappens(t *testing.T) {
	bubble(t, func(b *bench) {
		require.PanicsWithValue(b, "at the disco", func() {
			_ = b.Do(b.Context(), "k", nil, func(context.Context) error { panic("at the disco") })
		})
		require.True(b, b.free())
		exited := make(chan struct{})
		go func() {
			defer close(exited)
			_ = b.Do(b.Context(), "k", nil, func(context.Context) error {
				runtime.Goexit()
				return nil
			})
		}()
		<-exited
		require.True(b, b.free())
		ctx, cancel := context.WithCancel(b.Context())
		require.ErrorIs(b, b.Do(ctx, "k", nil, func(ctx context.Context) error {
			cancel()
			return ctx.Err()
		}), context.Canceled)
		require.True(b, b.free())
		require.Zero(b, b.meter.Get("lock.held"))
	})
}

func TestTheBodysErrorWins(t *testing.T) {
	overrun := func(context.Context) error {
		<-time.After(time.Second)
		return errBoom
	}
	bubble(t, func(b *bench) {
		o := &lock.AcquireOptions{Lease: time.Second}
		require.Equal(b, errBoom, b.Do(b.Context(), "k", o, overrun))
		require.Equal(b, 1, b.meter.Get("lock.lease.expired"))
		require.Equal(b, 1, b.log.lines("level=WARN", "had passed", "key=k"))

		require.PanicsWithValue(b, "late", func() {
			_ = b.Do(b.Context(), "k", o, func(ctx context.Context) error {
				_ = overrun(ctx)
				panic("late")
			})
		})
		require.Equal(b, 2, b.meter.Get("lock.lease.expired"))

		b.store.be(on("release", boom), nil)
		require.Equal(b, context.Canceled, b.Do(b.Context(), "k", nil, func(context.Context) error { return context.Canceled }))
		require.Equal(b, 1, b.log.lines("level=WARN", "could not be given back", "error=\"lock.Release: *errors.errorString\""))
	})
}

// What went wrong with giving back is told where nothing else did.
func TestABodyThatSucceeded(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	bubble(t, func(b *bench) {
		require.ErrorIs(b, b.Do(b.Context(), "k", &lock.AcquireOptions{Lease: time.Second}, func(context.Context) error {
			<-time.After(time.Second)
			return nil
		}), lock.ErrLeaseExpired)
		b.store.be(on("release", boom), nil)
		require.ErrorIs(b, b.Do(b.Context(), "k", nil, nothing), errBoom)
	})
}
