package pglock_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/lock"
)

func (n *node) locker(t *testing.T, poll time.Duration) *lock.Locker {
	t.Helper()
	l, err := lock.New(n.locks, &lock.Options{Region: "r", Poll: poll, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return l
}

// run has the locker listen until the test ends, and returns once it does.
func (n *node) run(t *testing.T, l *lock.Locker) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = l.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	n.listening(t)
}

func (n *node) listening(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return get[int](t, n, `select count(*)::int4 `+listeners) == 1 }, 30*time.Second, time.Millisecond)
}

// contended waits until the store knows of a waiter for "k".
func (n *node) contended(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return n.look(t, "k").Contended }, 30*time.Second, time.Millisecond)
}

const hour = time.Hour

// TestAReleaseIsHeardByAnotherNode: the poll is so long that nothing else can be what wakes the waiter.
func TestAReleaseIsHeardByAnotherNode(t *testing.T) {
	holder := newNode(t, postgres.Config{})
	waiter := newNode(t, postgres.Config{DSN: holder.dsn})
	here, there := holder.locker(t, hour), waiter.locker(t, hour)
	waiter.run(t, there)
	for range 3 {
		held, err := here.Acquire(t.Context(), "k", &lock.AcquireOptions{Lease: hour})
		require.NoError(t, err)
		got := make(chan error, 1)
		go func() {
			got <- there.Do(t.Context(), "k", &lock.AcquireOptions{Wait: hour, Lease: hour}, func(context.Context) error { return nil })
		}()
		holder.contended(t)
		require.NoError(t, held.Release(t.Context()))
		require.NoError(t, <-got)
	}
}

// TestWhatIsNotHeardIsFound: the listener's session ends between the mark and the release.
func TestWhatIsNotHeardIsFound(t *testing.T) {
	holder := newNode(t, postgres.Config{})
	waiter := newNode(t, postgres.Config{DSN: holder.dsn})
	there := waiter.locker(t, 50*time.Millisecond)
	waiter.run(t, there)
	a := holder.take(t, "k")
	got := make(chan error, 1)
	go func() {
		got <- there.Do(t.Context(), "k", &lock.AcquireOptions{Wait: hour, Lease: hour}, func(context.Context) error { return nil })
	}()
	holder.contended(t)
	require.Equal(t, 1, get[int](t, holder, `select count(pg_terminate_backend(pid))::int4 `+listeners))
	require.Equal(t, lock.Released, holder.release(t, "k", a))
	require.NoError(t, <-got)
	holder.listening(t) // again
}

// TestWaitersLeaveTheHolderItsConnections: a pool of two, many waiters, and a holder that needs the database.
func TestWaitersLeaveTheHolderItsConnections(t *testing.T) {
	n := newNode(t, postgres.Config{MaxConns: 2})
	lockers := []*lock.Locker{n.locker(t, 5*time.Millisecond), n.locker(t, 5*time.Millisecond), n.locker(t, 5*time.Millisecond)}
	held, err := lockers[0].Acquire(t.Context(), "k", &lock.AcquireOptions{Lease: hour})
	require.NoError(t, err)
	var waiting sync.WaitGroup
	for i := range 60 {
		waiting.Go(func() {
			if err := lockers[i%3].Do(t.Context(), "k", &lock.AcquireOptions{Wait: hour, Lease: hour}, func(ctx context.Context) error {
				_, err := n.db.Exec(ctx, `select 1`)
				return err
			}); err != nil {
				t.Error(err)
			}
		})
	}
	n.contended(t)
	for range 50 {
		n.exec(t, `select pg_sleep(0.002)`)
	}
	require.NoError(t, held.Release(t.Context()))
	waiting.Wait()
	require.Zero(t, n.look(t, "k"))
}

// TestAnAcquireOfUnknownOutcomeIsGivenBack, whether the server saw it or not.
func TestAnAcquireOfUnknownOutcomeIsGivenBack(t *testing.T) {
	direct := newNode(t, postgres.Config{})
	p := proxytest.New(t, direct.dsn)
	n := newNode(t, postgres.Config{DSN: p.DSN(), ExecMode: "simple_protocol"})
	n.look(t, "k")
	l := n.locker(t, 0)
	for name, mode := range map[string]proxytest.Mode{"before": proxytest.Before, "answered": proxytest.OnAnswer} {
		cut := p.Break(mode, "insert into caskeleton.lock_lease")
		_, err := l.Acquire(t.Context(), name, &lock.AcquireOptions{Lease: hour})
		<-cut.Struck()
		require.Error(t, err)
		require.NotErrorIs(t, err, fault.LockAcquisitionTimeout, "an error is no contention")
		require.Zero(t, direct.look(t, name), "nobody waits for an hour for what nobody knows to hold")
		direct.release(t, name, direct.take(t, name))
	}
	ctx, cancel := context.WithCancel(t.Context()) // a caller that leaves while the answer is on its way
	mute := p.Break(proxytest.Mute, "insert into caskeleton.lock_lease")
	go func() {
		<-mute.Struck()
		cancel()
	}()
	_, err := l.Acquire(ctx, "left", &lock.AcquireOptions{Lease: hour})
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, direct.look(t, "left"))
}

// crashEnv has this binary hold a key until it is killed.
const crashEnv = "PGLOCK_TEST_HOLD"

// holdUntilKilled takes "k" for a moment in the database of dsn, says so, and never gives it back.
func holdUntilKilled(dsn string, out io.Writer) error {
	ctx := context.Background()
	db, err := postgres.Open(ctx, postgres.Config{DSN: dsn}, nil)
	if err != nil {
		return err
	}
	locks, err := newLocks(db)
	if err != nil {
		return err
	}
	if h, err := locks.Acquire(ctx, key("k"), newToken(), 1500*time.Millisecond, false); err != nil || h.Held {
		return fmt.Errorf("held %v: %w", h, err)
	}
	if _, err := fmt.Fprintln(out, "held"); err != nil {
		return err
	}
	select {}
}

// TestACrashedHoldersKeyIsFreeOnceItsLeaseHasPassed, to whoever asks first and waits for nothing.
func TestACrashedHoldersKeyIsFreeOnceItsLeaseHasPassed(t *testing.T) {
	n := newNode(t, postgres.Config{})
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+n.dsn)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)
	l := n.locker(t, 0)
	_, err = l.Acquire(t.Context(), "k", &lock.AcquireOptions{})
	require.ErrorIs(t, err, fault.LockAcquisitionTimeout)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return n.look(t, "k") == lock.Holder{} }, 30*time.Second, 10*time.Millisecond)
	require.Equal(t, 1, get[int](t, n, `select count(*) from caskeleton.lock_lease`), "the row is still there")
	held, err := l.Acquire(t.Context(), "k", &lock.AcquireOptions{})
	require.NoError(t, err)
	require.NoError(t, held.Release(t.Context()))
}
