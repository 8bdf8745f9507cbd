//go:build e2e

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/redistest"
	"caskeleton.dev/lock"
)

// A caller gives up while its request is on the way. What Redis then grants is given back behind it, by the same connection.
func TestAGivenUpAcquireLeavesNothingBehind(t *testing.T) {
	srv := start(t)
	look := open(t, srv.Addr(), "")
	for round := range 10 {
		d := open(t, srv.Addr(), "")
		k, token := at(1)
		srv.Pause()
		ctx, cancel := context.WithCancel(t.Context())
		tried := make(chan error, 1)
		go func() {
			_, err := d.Acquire(ctx, k, token, long, round%2 == 0)
			tried <- err
		}()
		time.AfterFunc(instant, cancel)
		require.ErrorIs(t, await(t, tried, "giving up"), context.Canceled)
		ctx, cancel = context.WithTimeout(t.Context(), instant)
		_, err := d.Release(ctx, k, token)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded, "Redis says nothing to the release either")
		srv.Resume()
		require.Equal(t, lock.Lost, release(t, d, 2), "a call that is answered comes after both")
		require.True(t, isFree(t, look), "round %d", round)
	}
}

// Each call ends with its context, whatever Redis does, also where it has to connect first.
func TestNothingOutlastsItsContext(t *testing.T) {
	srv := start(t)
	net := redistest.NewProxy(t, srv.Addr())
	k, token := at(1)
	calls := map[string]func(ctx context.Context, d lock.Driver) error{
		"Acquire": func(ctx context.Context, d lock.Driver) error {
			_, err := d.Acquire(ctx, k, token, long, true)
			return err
		},
		"Look":    func(ctx context.Context, d lock.Driver) error { _, err := d.Look(ctx, k); return err },
		"Renew":   func(ctx context.Context, d lock.Driver) error { _, err := d.Renew(ctx, k, token, long); return err },
		"Release": func(ctx context.Context, d lock.Driver) error { _, err := d.Release(ctx, k, token); return err },
	}
	for name, call := range calls {
		for _, connected := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s connected=%v", name, connected), func(t *testing.T) {
				d := open(t, net.Addr(), "")
				net.Silence()
				defer net.Speak()
				if !connected {
					net.Cut()
				}
				ended := make(chan error, 1)
				go func() {
					err := io.EOF // as long as the cut is not noticed
					for errors.Is(err, io.EOF) {
						ctx, cancel := context.WithTimeout(t.Context(), 10*instant)
						err = call(ctx, d)
						cancel()
					}
					ended <- err
				}()
				require.ErrorIs(t, await(t, ended, "the end of the call"), context.DeadlineExceeded)
			})
		}
	}
}

// The network swallows everything, and the port's own bound ends the wait: an error, since nobody is known to hold the key.
func TestABlackholedRedisEndsWithTheWait(t *testing.T) {
	srv := start(t)
	net := redistest.NewProxy(t, srv.Addr())
	l := locker(t, net.Addr())
	net.Silence()
	_, err := l.Acquire(within(t), name, &lock.AcquireOptions{Wait: 50 * time.Millisecond})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, t.Context().Err())
	net.Cut()
	net.Speak()
	require.Eventually(t, func() bool {
		lease, err := l.Acquire(t.Context(), name, &lock.AcquireOptions{})
		return err == nil && lease.Release(t.Context()) == nil
	}, soon, instant, "the locker recovers once Redis is back")
}

func TestARestartedRedisHasForgottenAndTheHolderIsTold(t *testing.T) {
	srv := start(t)
	l := locker(t, srv.Addr())
	lease, err := l.Acquire(t.Context(), name, nil)
	require.NoError(t, err)
	srv.Kill()
	_, err = l.Acquire(t.Context(), "another", &lock.AcquireOptions{})
	require.Error(t, err)
	require.NotErrorIs(t, err, lock.ErrLeaseExpired)
	require.NotContains(t, err.Error(), "LOCK_ACQUISITION_TIMEOUT", "an outage is no contention")
	srv.Restart()
	require.Eventually(t, func() bool {
		err = lease.Renew(t.Context(), long)
		return errors.Is(err, lock.ErrLeaseExpired)
	}, soon, instant, "the scripts are unknown to the new server, and sent again")
	require.ErrorIs(t, lease.Release(t.Context()), lock.ErrLeaseExpired)
}
