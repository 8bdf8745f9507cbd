//go:build e2e

package canarytest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/redis/redislock"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/redistest"
	"caskeleton.dev/lock"
)

func TestNothingOfRedis(t *testing.T) {
	w := newWatch(t)
	server := redistest.Start(t)
	open := func(url string) (*redislock.Driver, error) {
		opts, err := rueidis.ParseURL(url)
		require.NoError(t, err)
		return redislock.Open(opts, nil)
	}
	for _, url := range []string{
		"redis://c4nary:c4nary@127.0.0.1:1",
		"redis://c4nary:c4nary@c4nary.invalid:6379",
		"redis://c4nary:c4nary@" + server.Addr(), // WRONGPASS
	} {
		_, err := open(url)
		require.Error(t, err)
		w.log.ErrorContext(w.ctx, "cannot start", "error", fault.Reason(err), "itself", err)
		w.answer(t, func(context.Context) error { return err })
	}

	// Nor may this user do what it could before.
	grant := func(rights ...string) {
		require.Equal(t, "OK", server.Do(append([]string{"ACL", "SETUSER", canary, "on", ">" + canary}, rights...)...))
	}
	grant("~*", "&*", "+@all")
	d, err := open(fmt.Sprintf("redis://%s:%s@%s", canary, canary, server.Addr()))
	require.NoError(t, err)
	t.Cleanup(d.Close)
	locker, err := lock.New(d, &lock.Options{Meter: w.meter, Logger: w.log, Lease: 3 * time.Second})
	require.NoError(t, err)
	lease, err := locker.Acquire(w.ctx, "held", nil)
	require.NoError(t, err)
	require.EqualError(t, locker.Do(w.ctx, "key", nil, func(context.Context) error {
		grant("-@all", "resetchannels")
		return fmt.Errorf("%s", canary)
	}), canary)
	w.answer(t, func(ctx context.Context) error {
		_, err := locker.Acquire(ctx, "another", nil)
		return err
	})
	w.until(t, lease.KeepAlive, "could not be renewed")
	w.until(t, locker.Run, "releases of locks in other processes are not heard")
	w.answer(t, func(ctx context.Context) error { return lease.Release(ctx) })
	server.Kill()
	w.answer(t, func(ctx context.Context) error {
		_, err := locker.Acquire(ctx, "another", nil)
		return err
	})

	// That to a command which is not there quotes its arguments, and the value of a lock has the key's name in it.
	without := redistest.Start(t, "--rename-command", "SET", "")
	quoting, err := open("redis://" + without.Addr())
	require.NoError(t, err)
	t.Cleanup(quoting.Close)
	locker, err = lock.New(quoting, &lock.Options{Meter: w.meter, Logger: w.log})
	require.NoError(t, err)
	w.answer(t, func(ctx context.Context) error {
		_, err := locker.Acquire(ctx, canary, nil)
		require.ErrorContains(t, err, canary, "or this proves nothing")
		return err
	})
	w.silent(t, "redislock: acquire: Redis refused: ERR", "redislock: connect: connection refused", "redislock: connect: Redis refused: WRONGPASS", "redislock: acquire: Redis refused: NOPERM", "could not be given back")
	require.Contains(t, w.metrics(t), "lock.")
}
