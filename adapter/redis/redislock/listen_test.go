//go:build e2e

package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/redis/redislock"
	"caskeleton.dev/internal/redistest"
	"caskeleton.dev/lock"
)

// ear hears what a driver hears, on a connection of its own.
type ear struct {
	ready chan struct{}
	rings chan lock.Digest
	ended chan error
}

func listen(ctx context.Context, t *testing.T, d *redislock.Driver) ear {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	e := ear{make(chan struct{}, 16), make(chan lock.Digest, 16), make(chan error, 1)}
	go func() {
		e.ended <- d.Listen(ctx, func() { e.ready <- struct{}{} }, func(k lock.Digest) { e.rings <- k })
	}()
	t.Cleanup(cancel)
	return e
}

func await[T any](t *testing.T, ch <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(soon):
		require.Fail(t, "nothing happened", what)
	}
	return v
}

func TestOnlyContendedReleasesAreHeard(t *testing.T) {
	srv := start(t)
	d := open(t, srv.Addr(), "")
	e := listen(t.Context(), t, open(t, srv.Addr(), ""))
	foreign := listen(t.Context(), t, open(t, srv.Addr(), "other:"))
	await(t, e.ready, "the subscription")
	await(t, foreign.ready, "the other application's subscription")

	acquire(t, d, 1)
	require.Equal(t, lock.Released, release(t, d, 1))
	acquire(t, d, 1)
	k, token := at(2)
	_, err := d.Acquire(t.Context(), k, token, long, false)
	require.NoError(t, err)
	require.Equal(t, lock.Released, release(t, d, 1))

	marked := lock.Key{Region: "DEFAULT", Name: "orders/18"}
	h, err := d.Acquire(t.Context(), marked, lock.Token{1}, long, true)
	require.NoError(t, err)
	require.False(t, h.Held)
	h, err = d.Acquire(t.Context(), marked, token, long, true)
	require.NoError(t, err)
	require.True(t, h.Contended)
	freed, err := d.Release(t.Context(), marked, token)
	require.NoError(t, err)
	require.Equal(t, lock.Lost, freed, "who waits has nothing to announce")
	freed, err = d.Release(t.Context(), marked, lock.Token{1})
	require.NoError(t, err)
	require.Equal(t, lock.Released, freed)

	require.Equal(t, marked.Digest(), await(t, e.rings, "the contended release"), "the first thing heard is of the one key that somebody waited for")
	require.Empty(t, e.rings)
	require.Empty(t, foreign.rings)
}

func TestALostConnectionEndsListening(t *testing.T) {
	srv := start(t)
	net := redistest.NewProxy(t, srv.Addr())
	d := open(t, net.Addr(), "")
	e := listen(t.Context(), t, d)
	await(t, e.ready, "the subscription")
	net.Cut()
	require.ErrorContains(t, await(t, e.ended, "the end"), "redislock: listen: ")

	require.Eventually(t, func() bool { return isFree(t, d) }, soon, instant, "the driver connects again")
	ctx, cancel := context.WithCancel(t.Context())
	e = listen(ctx, t, d)
	await(t, e.ready, "the next subscription")
	cancel()
	require.ErrorIs(t, await(t, e.ended, "the end"), context.Canceled)
}

func TestAWaiterInAnotherProcessIsWoken(t *testing.T) {
	srv := start(t)
	holder, waiter := locker(t, srv.Addr()), locker(t, srv.Addr())
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- waiter.Run(ctx) }()
	look := open(t, srv.Addr(), "")
	for range 5 {
		lease, err := holder.Acquire(t.Context(), name, nil)
		require.NoError(t, err)
		got := make(chan *lock.Lease, 1)
		go func() {
			l, err := waiter.Acquire(t.Context(), name, &lock.AcquireOptions{Wait: soon})
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		require.Eventually(t, func() bool {
			k, _ := at(0)
			h, err := look.Look(t.Context(), k)
			return err == nil && h.Contended
		}, soon, instant, "the waiter marks the key")
		require.NoError(t, lease.Release(t.Context()))
		l := await(t, got, "the hand-over, which no poll brings within the hour")
		require.NotNil(t, l)
		require.NoError(t, l.Release(t.Context()))
	}
	cancel()
	require.NoError(t, await(t, ran, "the end of Run"))
}
