//go:build e2e

package redislock_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/redistest"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/locktest"
)

func TestConformance(t *testing.T) {
	srv := redistest.Start(t)
	locktest.TestDriver(t, harness(t, srv, srv.Addr()))
}

func TestHistory(t *testing.T) {
	srv := redistest.Start(t)
	locktest.TestHistory(t, harness(t, srv, srv.Addr()), nil)
}

// The server stands still for less than the shortest leases, or for more.
func TestHistoryWhileRedisPauses(t *testing.T) {
	srv := redistest.Start(t)
	locktest.TestHistory(t, harness(t, srv, srv.Addr()), &locktest.HistoryOptions{Fault: func(ctx context.Context) {
		for _, d := range []time.Duration{10 * time.Millisecond, 150 * time.Millisecond} {
			srv.Pause()
			pass(ctx, d)
			srv.Resume()
			pass(ctx, 30*time.Millisecond)
		}
	}})
}

// Connections break at any moment, at once or after some time in which nothing gets through.
func TestHistoryWhileConnectionsBreak(t *testing.T) {
	srv := redistest.Start(t)
	net := redistest.NewProxy(t, srv.Addr())
	locktest.TestHistory(t, harness(t, srv, net.Addr()), &locktest.HistoryOptions{Fault: func(ctx context.Context) {
		net.Cut()
		pass(ctx, 50*time.Millisecond)
		net.Silence()
		pass(ctx, 20*time.Millisecond)
		net.Cut()
		net.Speak()
		pass(ctx, 50*time.Millisecond)
	}})
}

// pass lets time go by.
func pass(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// harness keeps each store's locks under a prefix of its own. Its drivers reach the server at addr.
func harness(t *testing.T, srv *redistest.Server, addr string) locktest.Harness {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.Addr()}, DisableCache: true})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	var stores atomic.Int32
	return locktest.Harness{New: func(t *testing.T) locktest.Store {
		t.Helper()
		prefix := fmt.Sprintf("store%d:", stores.Add(1))
		return locktest.Store{
			Driver: open(t, addr, prefix), Other: open(t, addr, prefix),
			Expire: func(ctx context.Context, k lock.Key) error {
				digest := k.Digest()
				return c.Do(ctx, c.B().Pexpireat().Key(prefix+hex.EncodeToString(digest[:])).MillisecondsTimestamp(1).Build()).Error()
			},
		}
	}}
}
