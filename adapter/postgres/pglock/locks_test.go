package pglock_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pglock"
	"caskeleton.dev/lock"
)

func testAKeyIsHeldByOne(t *testing.T, n *node) {
	t.Helper()
	require.Zero(t, n.look(t, "k"))
	a := n.take(t, "k")
	h := n.look(t, "k")
	require.True(t, h.Held)
	require.False(t, h.Contended)
	require.Greater(t, h.Left, 50*time.Minute)
	require.LessOrEqual(t, h.Left, time.Hour)
	require.False(t, n.acquire(t, "k", newToken(), time.Minute, false).Contended)
	require.False(t, n.look(t, "k").Contended, "who does not wait marks nothing")
	require.True(t, n.acquire(t, "k", newToken(), time.Minute, true).Contended)
	require.True(t, n.acquire(t, "k", newToken(), time.Minute, false).Contended)
	require.Greater(t, n.look(t, "k").Left, 50*time.Minute, "the holder's lease is what counts")
	require.Zero(t, n.acquire(t, "other", newToken(), time.Minute, true))

	held, err := n.locks.Renew(t.Context(), key("k"), a, 3*time.Hour)
	require.NoError(t, err)
	require.True(t, held)
	require.Greater(t, n.look(t, "k").Left, 2*time.Hour)
	held, err = n.locks.Renew(t.Context(), key("k"), newToken(), 9*time.Hour)
	require.NoError(t, err)
	require.False(t, held)
	require.Less(t, n.look(t, "k").Left, 4*time.Hour)

	require.Equal(t, lock.Lost, n.release(t, "k", newToken()))
	require.True(t, n.look(t, "k").Held)
	require.Equal(t, lock.Released, n.release(t, "k", a))
	require.Equal(t, lock.Lost, n.release(t, "k", a))
	require.Zero(t, n.look(t, "k"))
	require.Zero(t, get[int](t, n, `select count(*) from caskeleton.lock_lease where name = 'k'`))
}

func testAnExpiredLeaseHoldsNothing(t *testing.T, n *node) {
	t.Helper()
	a := n.take(t, "k")
	n.expire(t, "k")
	require.Zero(t, n.look(t, "k"))
	held, err := n.locks.Renew(t.Context(), key("k"), a, time.Hour)
	require.NoError(t, err)
	require.False(t, held, "nobody took it, and it is lost all the same")
	b := n.take(t, "k")
	require.Equal(t, lock.Lost, n.release(t, "k", a), "the new holder's row is left alone")
	require.Equal(t, lock.Released, n.release(t, "k", b))
	a = n.take(t, "k")
	n.expire(t, "k")
	require.Equal(t, lock.Expired, n.release(t, "k", a))
	require.Equal(t, lock.Lost, n.release(t, "k", a))
}

// testARepeatedAcquireTakesAnew: an answer that was lost may have been a grant.
func testARepeatedAcquireTakesAnew(t *testing.T, n *node) {
	t.Helper()
	a := newToken()
	require.Zero(t, n.acquire(t, "k", a, time.Minute, false))
	require.True(t, n.acquire(t, "k", newToken(), time.Minute, true).Contended)
	require.Zero(t, n.acquire(t, "k", a, time.Hour, false))
	h := n.look(t, "k")
	require.Greater(t, h.Left, 50*time.Minute)
	require.True(t, h.Contended, "who waits still does")
}

// testTheClockIsReadAfterTheRowIsLocked: each statement queues on the row until the lease has passed.
func testTheClockIsReadAfterTheRowIsLocked(t *testing.T, n *node) {
	t.Helper()
	const lease = 500 * time.Millisecond
	for name, c := range map[string]struct {
		call func(k lock.Key, a lock.Token) (any, error)
		want any
	}{
		"acquire": {func(k lock.Key, _ lock.Token) (any, error) {
			return n.locks.Acquire(t.Context(), k, newToken(), time.Hour, true)
		}, lock.Holder{}},
		"renew":   {func(k lock.Key, a lock.Token) (any, error) { return n.locks.Renew(t.Context(), k, a, time.Hour) }, false},
		"release": {func(k lock.Key, a lock.Token) (any, error) { return n.locks.Release(t.Context(), k, a) }, lock.Expired},
	} {
		a := newToken()
		require.Zero(t, n.acquire(t, name, a, lease, false))
		end := n.hold(t, name, lockRow)
		answer := async(t, func() (any, error) { return c.call(key(name), a) })
		n.queued(t)
		require.Eventually(t, func() bool { return n.look(t, name) == lock.Holder{} }, 30*time.Second, 10*time.Millisecond)
		end("rollback")
		require.Equal(t, c.want, <-answer, name)
	}
}

// testOneTakesAnExpiredRow: two nodes race for it, with many goroutines each, again and again.
func testOneTakesAnExpiredRow(t *testing.T, n *node) {
	t.Helper()
	other := newNode(t, postgres.Config{DSN: n.dsn, MaxConns: 8})
	n.take(t, "k")
	for range 10 {
		n.expire(t, "k")
		var won atomic.Int32
		var racing sync.WaitGroup
		for i := range 16 {
			racing.Go(func() {
				who := []*node{n, other}[i%2]
				h, err := who.locks.Acquire(t.Context(), key("k"), newToken(), time.Hour, i%4 < 2)
				if err != nil {
					t.Error(err)
				}
				if !h.Held {
					won.Add(1)
				} else if h.Left <= 0 {
					t.Error("held, and nothing left")
				}
			})
		}
		racing.Wait()
		require.EqualValues(t, 1, won.Load())
	}
}

func TestKeysAreExact(t *testing.T) {
	n := newNode(t, postgres.Config{})
	names := []string{"", " ", "k", "K", "k ", "\x00", "k\x00", "\xff", "\xfe", "é", "e\u0301", "🔒", strings.Repeat("é", 300), strings.Repeat("é", 301), strings.Repeat("x", 1<<20)}
	for _, region := range []string{"r", "", "\xff\x00", strings.Repeat("r", 1000), strings.Repeat("r", 1001)} {
		for _, name := range names {
			h, err := n.locks.Acquire(t.Context(), lock.Key{Region: region, Name: name}, newToken(), time.Hour, false)
			require.NoError(t, err)
			require.Zero(t, h, "%.20q in %.20q", name, region)
		}
	}
	require.Equal(t, 5*len(names), get[int](t, n, `select count(*) from caskeleton.lock_lease`))
	require.Equal(t, 200, get[int](t, n, `select char_length(name) from caskeleton.lock_lease where name like 'ééé%' limit 1`))
}

// TestTheZoneOfASessionDoesNotMatter: times are points, and none is sent by a node, whose clock may be wrong.
func TestTheZoneOfASessionDoesNotMatter(t *testing.T) {
	n := newNode(t, postgres.Config{})
	digest, a := key("k").Digest(), newToken()
	for _, zone := range []string{"Pacific/Kiritimati", "Etc/GMT+12"} {
		conn := n.session(t)
		_, err := conn.Exec(t.Context(), `set timezone = '`+zone+`'`)
		require.NoError(t, err)
		var granted, contended bool
		var us int64
		for name, token := range map[string]lock.Token{zone: newToken(), "k": a} {
			digest := key(name).Digest()
			require.NoError(t, conn.QueryRow(t.Context(), pglock.AcquireSQL, digest[:], "r", name, token[:], time.Hour.Microseconds(), false).Scan(&granted, &us, &contended))
			require.True(t, granted, "%s in %s", name, zone)
			h := n.look(t, name)
			require.Greater(t, h.Left, 50*time.Minute)
			require.LessOrEqual(t, h.Left, time.Hour)
		}
		require.NoError(t, conn.QueryRow(t.Context(), pglock.LookSQL, digest[:]).Scan(&us, &contended))
		require.InDelta(t, n.look(t, "k").Left.Minutes(), time.Duration(us*1000).Minutes(), 10)
		require.True(t, n.acquire(t, "k", newToken(), time.Hour, false).Held)
	}
}

func TestManyKeys(t *testing.T) {
	const keys, workers = 10_000, 8
	n := newNode(t, postgres.Config{MaxConns: workers})
	tokens := make([]lock.Token, keys)
	each := func(f func(i int)) {
		var working sync.WaitGroup
		for w := range workers {
			working.Go(func() {
				for i := w; i < keys; i += workers {
					f(i)
				}
			})
		}
		working.Wait()
	}
	each(func(i int) {
		tokens[i] = newToken()
		if h, err := n.locks.Acquire(t.Context(), key(fmt.Sprint(i)), tokens[i], time.Hour, false); err != nil || h.Held {
			t.Error(h, err)
		}
	})
	require.Equal(t, keys, get[int](t, n, `select count(*) from caskeleton.lock_lease`))
	each(func(i int) {
		if f, err := n.locks.Release(t.Context(), key(fmt.Sprint(i)), tokens[i]); err != nil || f != lock.Released {
			t.Error(f, err)
		}
	})
	require.Zero(t, get[int](t, n, `select count(*) from caskeleton.lock_lease`))
}

func testReap(t *testing.T, n *node) {
	t.Helper()
	for i := range 5 {
		n.take(t, fmt.Sprint("old", i))
	}
	n.exec(t, `update caskeleton.lock_lease set expires_at = clock_timestamp() - interval '2 hours'`)
	n.take(t, "held")
	n.take(t, "young")
	n.expire(t, "young")
	end := n.hold(t, "old0", lockRow)
	reap := func() int {
		gone, err := n.locks.Reap(t.Context(), time.Hour, 3)
		require.NoError(t, err)
		return gone
	}
	require.Equal(t, 3, reap())
	require.Equal(t, 1, reap(), "a row that somebody is at is left alone")
	end("rollback")
	require.Equal(t, 1, reap())
	require.Zero(t, reap())
	require.Equal(t, "held young", get[string](t, n, `select string_agg(name, ' ' order by name) from caskeleton.lock_lease`))
	gone, err := n.locks.Reap(t.Context(), 0, 1)
	require.NoError(t, err)
	require.Equal(t, 1, gone)
	require.True(t, n.look(t, "held").Held)
}

func TestReapRefuses(t *testing.T) {
	n := newNode(t, postgres.Config{})
	_, err := n.locks.Reap(t.Context(), -time.Second, 1)
	require.EqualError(t, err, "pglock: olderThan is -1s; use 0 to 876000h0m0s, an hour for example")
	_, err = n.locks.Reap(t.Context(), 0, 0)
	require.EqualError(t, err, "pglock: limit is 0; use 1 or more, 1000 for example")
}

func testTheLongestLease(t *testing.T, n *node) {
	t.Helper()
	most := n.locks.MaxLease()
	a := newToken()
	require.Zero(t, n.acquire(t, "k", a, most, false))
	require.Greater(t, n.look(t, "k").Left, most-time.Hour)
	held, err := n.locks.Renew(t.Context(), key("k"), a, most)
	require.NoError(t, err)
	require.True(t, held)
	require.Zero(t, n.acquire(t, "short", newToken(), 1, false), "a nanosecond is more than nothing")
}

func TestNewRefusesAListenDSN(t *testing.T) {
	n := newNode(t, postgres.Config{})
	_, err := pglock.New(n.db, &pglock.Options{ListenDSN: "postgres://u:open-sesame@%zz"})
	require.ErrorContains(t, err, "ListenDSN")
	require.NotContains(t, err.Error(), "open-sesame")
}

// testWhatIsBrokenIsAnError, and no answer; a later call finds it mended.
func testWhatIsBrokenIsAnError(t *testing.T, n *node) {
	t.Helper()
	n.take(t, "k")
	n.exec(t, `alter table caskeleton.lock_lease rename to gone`)
	_, err := n.locks.Acquire(t.Context(), key("k"), newToken(), time.Hour, false)
	require.ErrorContains(t, err, "SQLSTATE 42P01")
	_, err = n.locks.Look(t.Context(), key("k"))
	require.ErrorContains(t, err, "SQLSTATE 42P01")
	_, err = n.locks.Renew(t.Context(), key("k"), newToken(), time.Hour)
	require.ErrorContains(t, err, "SQLSTATE 42P01")
	_, err = n.locks.Release(t.Context(), key("k"), newToken())
	require.ErrorContains(t, err, "SQLSTATE 42P01")
	n.exec(t, `alter table caskeleton.gone rename to lock_lease`)
	require.True(t, n.acquire(t, "k", newToken(), time.Hour, false).Held)
}
