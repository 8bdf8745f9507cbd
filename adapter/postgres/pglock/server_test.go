package pglock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/embedded"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/lock"
)

// server is one whose log a test can read.
type server struct{ *embedded.Server }

func newServer(t *testing.T, isolation string) server {
	t.Helper()
	s := server{pgtest.PrivateServer(t, &embedded.Options{FsyncOff: true, Settings: map[string]string{"log_statement": "all", "lc_messages": "C"}})}
	m, err := migrations.New(s.DSN(), []migrations.Stream{migrations.Lock()}, nil)
	require.NoError(t, err)
	_, err = m.Up(t.Context())
	require.NoError(t, err)
	isolate(t, s.DSN(), isolation)
	return s
}

// log returns the lines that match.
func (s server) log(t *testing.T, pattern string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.DataDir(), "server.log"))
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if regexp.MustCompile(pattern).MatchString(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestStatements counts them by the server's log.
func TestStatements(t *testing.T) {
	s := newServer(t, "read committed")
	for _, mode := range execModes {
		n := newNode(t, postgres.Config{DSN: s.DSN(), ExecMode: mode})
		count := func(call func()) int {
			const statement = `LOG: +(statement|execute [^:]*): `
			before := len(s.log(t, statement))
			call()
			return len(s.log(t, statement)) - before
		}
		var a lock.Token
		require.Equal(t, 1, count(func() { a = n.take(t, "k") }), mode)
		require.Equal(t, 1, count(func() { n.acquire(t, "k", newToken(), time.Hour, false) }), mode)
		require.Equal(t, 1, count(func() { n.look(t, "k") }), mode)
		require.Equal(t, 1, count(func() { _, _ = n.locks.Renew(t.Context(), key("k"), a, time.Hour) }), mode)
		require.Equal(t, 1, count(func() { n.release(t, "k", a) }), mode)
		a = n.take(t, "k")
		require.Equal(t, 1, count(func() { n.acquire(t, "k", newToken(), time.Hour, true) }), mode)
		require.Equal(t, 1, count(func() { n.release(t, "k", a) }), mode)
	}
}

// TestAHandOverAmongManyWaiters counts the statements of two nodes with a hundred waiters each, of which one hears of releases.
func TestAHandOverAmongManyWaiters(t *testing.T) {
	const waiters = 200
	s := newServer(t, "read committed")
	nodes := []*node{newNode(t, postgres.Config{DSN: s.DSN(), MaxConns: 2}), newNode(t, postgres.Config{DSN: s.DSN(), MaxConns: 2})}
	lockers := []*lock.Locker{nodes[0].locker(t, 0), nodes[1].locker(t, 0)}
	nodes[0].run(t, lockers[0])
	held, err := lockers[1].Acquire(t.Context(), "k", &lock.AcquireOptions{Lease: hour})
	require.NoError(t, err)
	var inside, ran atomic.Int32
	var waiting sync.WaitGroup
	for i := range waiters {
		waiting.Go(func() {
			if err := lockers[i%2].Do(t.Context(), "k", &lock.AcquireOptions{Wait: hour, Lease: hour}, func(context.Context) error {
				if inside.Add(1) > 1 {
					t.Error("two at once")
				}
				ran.Add(1)
				inside.Add(-1)
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	nodes[0].contended(t)
	const statement = `LOG: +(statement|execute [^:]*): `
	before := len(s.log(t, statement))
	require.NoError(t, held.Release(t.Context()))
	waiting.Wait()
	require.EqualValues(t, waiters, ran.Load())
	require.LessOrEqual(t, len(s.log(t, statement))-before, 20*waiters)
}

// TestContentionLeavesNoErrorInTheLog: everything at once on few keys, whose leases are over as soon as they begin.
func TestContentionLeavesNoErrorInTheLog(t *testing.T) {
	for _, isolation := range []string{"read committed", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			s := newServer(t, isolation)
			nodes := []*node{newNode(t, postgres.Config{DSN: s.DSN(), ExecMode: "cache_statement"}), newNode(t, postgres.Config{DSN: s.DSN(), ExecMode: "exec"})}
			const trouble = `(WARNING|ERROR|FATAL|PANIC): `
			before := s.log(t, trouble) // who came while it started was refused
			var working sync.WaitGroup
			must := func(err error) {
				if err != nil {
					t.Error(err)
				}
			}
			for w := range 12 {
				working.Go(func() {
					locks := nodes[w%2].locks
					for i := range 60 {
						k, token := key(fmt.Sprint(i%3)), newToken()
						_, err := locks.Acquire(t.Context(), k, token, time.Millisecond<<(i%6), i%2 == 0)
						must(err)
						_, err = locks.Look(t.Context(), k)
						must(err)
						_, err = locks.Renew(t.Context(), k, token, time.Duration(i)*time.Millisecond+1)
						must(err)
						if i%4 > 0 { // or it is left to expire
							_, err = locks.Release(t.Context(), k, token)
							must(err)
						}
						if i%20 == 0 {
							_, err = locks.Reap(t.Context(), 0, 2)
							must(err)
						}
					}
				})
			}
			working.Wait()
			require.NotEmpty(t, s.log(t, `lock_lease`), "the log is that of this server")
			require.Equal(t, before, s.log(t, trouble))
		})
	}
}
