//go:build e2e

package redislock_test

import (
	"encoding/hex"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/lock"
)

// stored is the Redis key of the lock that [at] names.
func stored() string {
	k, _ := at(0)
	digest := k.Digest()
	return "caskeleton:lock:" + hex.EncodeToString(digest[:])
}

func TestACycleIsTwoCommands(t *testing.T) {
	srv := start(t)
	d := open(t, srv.Addr(), "")
	require.Equal(t, "OK", srv.Do("CONFIG", "RESETSTAT"))
	for range 10 {
		acquire(t, d, 1)
		require.Equal(t, lock.Released, release(t, d, 1))
	}
	stats := srv.Do("INFO", "commandstats")
	for _, cmd := range []string{"set", "evalsha"} {
		require.Regexp(t, `cmdstat_`+cmd+`:calls=10,`, stats)
	}
	sent := map[string]bool{}
	for _, m := range regexp.MustCompile(`cmdstat_([a-z|]+):`).FindAllStringSubmatch(stats, -1) {
		sent[m[1]] = true
	}
	// get and del are what the script does; config is the test's.
	require.Equal(t, map[string]bool{"set": true, "evalsha": true, "get": true, "del": true, "config|resetstat": true}, sent)
}

func TestAValueCanBeReadByPeople(t *testing.T) {
	srv := start(t)
	d := open(t, srv.Addr(), "")
	acquire(t, d, 0xab)
	require.Equal(t, "ab000000000000000000000000000000.orders/17", srv.Do("GET", stored()))
	k, token := at(1)
	_, err := d.Acquire(t.Context(), k, token, long, true)
	require.NoError(t, err)
	require.Equal(t, "ab000000000000000000000000000000!orders/17", srv.Do("GET", stored()))
}

func TestWhatIsNoLockIsAnError(t *testing.T) {
	srv := start(t)
	d := open(t, srv.Addr(), "")
	k, token := at(1)
	for what, write := range map[string][]string{
		"a value":            {"SET", stored(), "something", "EX", "100"},
		"a lease that stays": {"SET", stored(), "ab000000000000000000000000000000.orders/17"},
		"a hash":             {"HSET", stored(), "a", "b"},
	} {
		srv.Do("DEL", stored())
		srv.Do(write...)
		_, err := d.Acquire(t.Context(), k, token, long, false)
		require.ErrorContains(t, err, "redislock: acquire: ", what)
		_, err = d.Look(t.Context(), k)
		require.ErrorContains(t, err, "redislock: look: ", what)
	}
}

// A user with the rights that the documentation names can do everything.
func TestTheRightsThatAreNeeded(t *testing.T) {
	srv := start(t)
	rights := []string{"ACL", "SETUSER", "locks", "on", ">secret", "~caskeleton:lock:*", "&caskeleton:lock:released", "-@all"}
	for _, cmd := range []string{"get", "set", "setrange", "del", "pttl", "pexpire", "publish", "subscribe", "eval", "evalsha", "script|load", "ping"} {
		rights = append(rights, "+"+cmd)
	}
	require.Equal(t, "OK", srv.Do(rights...))
	d := openAs(t, srv.Addr(), "locks", "secret")
	e := listen(t.Context(), t, d)
	await(t, e.ready, "the subscription")
	acquire(t, d, 1)
	k, token := at(2)
	h, err := d.Acquire(t.Context(), k, token, long, true)
	require.NoError(t, err)
	require.True(t, h.Contended)
	_, token = at(1)
	renewed, err := d.Renew(t.Context(), k, token, long)
	require.NoError(t, err)
	require.True(t, renewed)
	require.Equal(t, lock.Released, release(t, d, 1))
	require.Equal(t, k.Digest(), await(t, e.rings, "the release"))
}
