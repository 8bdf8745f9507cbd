//go:build e2e

package redislock_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/redis/redislock"
	"caskeleton.dev/internal/redistest"
	"caskeleton.dev/lock"
)

const (
	name    = "orders/17"
	long    = 10 * time.Minute // outlasts any test
	soon    = 30 * time.Second // for what must happen
	instant = 5 * time.Millisecond
)

func open(t *testing.T, addr, prefix string) *redislock.Driver {
	t.Helper()
	d, err := redislock.Open(rueidis.ClientOption{InitAddress: []string{addr}}, &redislock.Options{Prefix: prefix})
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// locker returns one on a connection of its own, as another process would have. Its waiters poll every hour: only what they hear wakes them.
func locker(t *testing.T, addr string) *lock.Locker {
	t.Helper()
	l, err := lock.New(open(t, addr, ""), &lock.Options{Lease: long, Poll: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return l
}

// at is a key, and a token that is unlike another number's.
func at(n byte) (lock.Key, lock.Token) { return lock.Key{Region: "DEFAULT", Name: name}, lock.Token{n} }

func isFree(t *testing.T, d *redislock.Driver) bool {
	t.Helper()
	k, _ := at(0)
	h, err := d.Look(t.Context(), k)
	return err == nil && !h.Held
}

func acquire(t *testing.T, d *redislock.Driver, n byte) {
	t.Helper()
	k, token := at(n)
	h, err := d.Acquire(t.Context(), k, token, long, false)
	require.NoError(t, err)
	require.Equal(t, lock.Holder{}, h)
}

func release(t *testing.T, d *redislock.Driver, n byte) lock.Freed {
	t.Helper()
	k, token := at(n)
	freed, err := d.Release(t.Context(), k, token)
	require.NoError(t, err)
	return freed
}

// within bounds what is to happen.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T) *redistest.Server {
	t.Helper()
	return redistest.Start(t)
}

func openAs(t *testing.T, addr, user, password string) *redislock.Driver {
	t.Helper()
	d, err := redislock.Open(rueidis.ClientOption{InitAddress: []string{addr}, Username: user, Password: password}, nil)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}
