//go:build e2e

package pglock_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/lock"
)

// TestThroughPgBouncer runs the tests that run in each mode again, through PgBouncer in transaction mode. No role may have another default
// isolation there.
func TestThroughPgBouncer(t *testing.T) {
	before := strict
	t.Cleanup(func() { strict = before })
	strict = nil
	pgtest.ThroughPgBouncer(t, &execModes, &through, map[string]func(*testing.T){
		"InEachMode":                          TestInEachMode,
		"Conformance":                         TestConformance,
		"AReleaseIsHeardByAnotherNode":        TestAReleaseIsHeardByAnotherNode,
		"WhatIsNotHeardIsFound":               TestWhatIsNotHeardIsFound,
		"WaitersLeaveTheHolderItsConnections": TestWaitersLeaveTheHolderItsConnections,
		"KeysAreExact":                        TestKeysAreExact,
	})
}

// TestWithoutASessionWaitersPoll: LISTEN is refused behind a pooler, which the log says with what to do about it, and locks work all the same.
func TestWithoutASessionWaitersPoll(t *testing.T) {
	dsn := migrationstest.DSN(t, migrations.Lock())
	n := newNode(t, postgres.Config{DSN: pgtest.PgBouncer(t, dsn), ExecMode: "exec", MaxConns: 2})
	told := &firstLine{written: make(chan struct{})}
	locker, err := lock.New(n.locks, &lock.Options{Region: "r", Logger: slog.New(slog.NewTextHandler(told, nil))})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- locker.Run(ctx) }()
	<-told.written
	require.Contains(t, told.text.String(), "waiters poll")
	require.Contains(t, told.text.String(), "set ListenDSN")

	held := n.take(t, "k")
	got := make(chan error, 1)
	go func() {
		got <- locker.Do(t.Context(), "k", &lock.AcquireOptions{Wait: hour, Lease: hour}, func(context.Context) error { return nil })
	}()
	n.contended(t)
	n.release(t, "k", held)
	require.NoError(t, <-got, "found by looking")
	var left int
	require.NoError(t, pgtest.Connect(t, dsn).QueryRow(t.Context(), `select count(*)::int4 `+listeners).Scan(&left))
	require.Zero(t, left, "no LISTEN stays behind in a session that others have next")
	stop()
	require.NoError(t, <-ended)
}

// firstLine is a log of which the first line matters.
type firstLine struct {
	once    sync.Once
	text    bytes.Buffer
	written chan struct{}
}

func (l *firstLine) Write(p []byte) (int, error) {
	l.once.Do(func() {
		l.text.Write(p)
		close(l.written)
	})
	return len(p), nil
}
