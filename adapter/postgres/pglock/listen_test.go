package pglock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pglock"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/lock"
)

// listen listens until the test ends, and returns what is heard and what listening ends with.
func listen(t *testing.T, n *node) (heard chan lock.Digest, ended chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended = make(chan lock.Digest, 100), make(chan error, 1)
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ended <- n.locks.Listen(ctx, func() { close(ready) }, func(d lock.Digest) { heard <- d })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	select {
	case <-ready:
	case err := <-ended:
		require.NoError(t, err)
	}
	return heard, ended
}

// testOnlyAContendedReleaseIsHeard: they would come in the order of their commits.
func testOnlyAContendedReleaseIsHeard(t *testing.T, n *node) {
	t.Helper()
	heard, _ := listen(t, newNode(t, postgres.Config{DSN: n.dsn}))
	n.release(t, "alone", n.take(t, "alone"))
	a := n.take(t, "tried")
	n.acquire(t, "tried", newToken(), time.Hour, false)
	n.release(t, "tried", a)
	n.exec(t, `notify caskeleton_lock, 'what others say'`)
	for _, name := range []string{"awaited", "late"} {
		a = n.take(t, name)
		n.acquire(t, name, newToken(), time.Hour, true)
		if name == "late" {
			n.expire(t, name)
		}
		n.release(t, name, a)
		require.Equal(t, key(name).Digest(), <-heard)
	}
}

const listeners = `from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query ilike 'listen%'`

func TestListeningEnds(t *testing.T) {
	n := newNode(t, postgres.Config{})
	sessions := func() int { return get[int](t, n, `select count(*)::int4 `+listeners) }

	_, ended := listen(t, n)
	require.Equal(t, 1, sessions())
	require.Equal(t, 1, get[int](t, n, `select count(pg_terminate_backend(pid))::int4 `+listeners))
	require.ErrorContains(t, <-ended, "DB_UNAVAILABLE")

	ctx, cancel := context.WithCancel(t.Context())
	err := n.locks.Listen(ctx, cancel, func(lock.Digest) {})
	require.Equal(t, context.Canceled, err)
	require.Eventually(t, func() bool { return sessions() == 0 }, 30*time.Second, time.Millisecond)

	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, n.locks.Listen(ctx, func() {}, func(lock.Digest) {}), context.DeadlineExceeded)
}

// TestASilentSessionIsGivenUp: a network that drops everything tells nobody.
func TestASilentSessionIsGivenUp(t *testing.T) {
	n := newNode(t, postgres.Config{})
	p := proxytest.New(t, n.dsn)
	locks, err := pglock.New(n.db, &pglock.Options{ListenDSN: p.DSN()})
	require.NoError(t, err)
	locks.SetQuiet(50*time.Millisecond, 30*time.Second)
	heard, ended := listen(t, &node{n.dsn, n.db, locks})
	pings := p.Break(proxytest.OnAnswer, "-- ping")
	<-pings.Struck()
	require.Error(t, <-ended)
	require.Empty(t, heard)

	heard, ended = listen(t, &node{n.dsn, n.db, locks})
	for range 3 { // quiet in between, and alive
		a := n.take(t, "k")
		n.acquire(t, "k", newToken(), time.Hour, true)
		n.release(t, "k", a)
		require.Equal(t, key("k").Digest(), <-heard)
		<-time.After(120 * time.Millisecond)
	}
	pings = p.Break(proxytest.OnAnswer, "-- ping")
	<-pings.Struck()
	require.Error(t, <-ended)

	locks.SetQuiet(50*time.Millisecond, 200*time.Millisecond)
	mute := p.Break(proxytest.Mute, "-- ping")
	_, ended = listen(t, &node{n.dsn, n.db, locks})
	<-mute.Struck()
	require.ErrorContains(t, <-ended, "postgres: ")
}

func TestListeningWithoutAServer(t *testing.T) {
	n := newNode(t, postgres.Config{})
	locks, err := pglock.New(n.db, &pglock.Options{ListenDSN: "postgres://u:open-sesame@127.0.0.1:1/x"})
	require.NoError(t, err)
	err = locks.Listen(t.Context(), func() { t.Error("ready") }, func(lock.Digest) {})
	require.ErrorContains(t, err, "DB_UNAVAILABLE")
	require.NotContains(t, err.Error(), "open-sesame")
	require.NotContains(t, err.Error(), "127.0.0.1")
}
