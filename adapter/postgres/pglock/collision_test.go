package pglock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

// testAHeldRowIsNotTouched by who does not wait, nor by who waits where that is known already: not even its lock is taken.
func testAHeldRowIsNotTouched(t *testing.T, n *node) {
	t.Helper()
	row := func() string {
		return get[string](t, n, `select xmin || ' ' || xmax || ' ' || ctid from caskeleton.lock_lease`)
	}
	n.take(t, "k")
	before := row()
	n.acquire(t, "k", newToken(), time.Hour, false)
	n.look(t, "k")
	require.Equal(t, before, row())
	n.acquire(t, "k", newToken(), time.Hour, true)
	marked := row()
	require.NotEqual(t, before, marked)
	n.acquire(t, "k", newToken(), time.Hour, true)
	n.acquire(t, "k", newToken(), time.Hour, false)
	n.look(t, "k")
	require.Equal(t, marked, row())
}

// TestAMarkMeetsARelease: whichever has the row first, the waiter gets the key or its release is announced.
func TestAMarkMeetsARelease(t *testing.T) {
	n := newNode(t, postgres.Config{})
	a := n.take(t, "k")
	end := n.hold(t, "k", `update caskeleton.lock_lease set contended = true where digest = $1`)
	heard, _ := listen(t, n)
	freed := async(t, func() (lock.Freed, error) { return n.locks.Release(t.Context(), key("k"), a) })
	n.queued(t)
	end("commit")
	require.Equal(t, lock.Released, <-freed)
	require.Equal(t, key("k").Digest(), <-heard, "the mark was not there when the release began")

	a = n.take(t, "k")
	end = n.hold(t, "k", `delete from caskeleton.lock_lease where digest = $1`)
	got := async(t, func() (lock.Holder, error) {
		return n.locks.Acquire(t.Context(), key("k"), newToken(), time.Hour, true)
	})
	n.queued(t)
	end("commit")
	require.Zero(t, <-got)
	require.Equal(t, lock.Lost, n.release(t, "k", a))
}

// TestACollisionIsTriedAgain by the port. Only sessions can have one whose isolation somebody else has set.
func TestACollisionIsTriedAgain(t *testing.T) {
	s := newServer(t, "read committed")
	for _, mode := range execModes {
		other := newNode(t, postgres.Config{DSN: s.DSN()})
		n := newNode(t, postgres.Config{DSN: s.DSN(), ExecMode: mode, MaxConns: 1})
		locker, err := lock.New(n.locks, &lock.Options{Region: key(mode).Region})
		require.NoError(t, err)
		n.exec(t, `select set_config('default_transaction_isolation', 'serializable', false)`)
		const collision = `ERROR: +could not serialize`
		before := len(s.log(t, collision))
		const releases = 3
		for range releases {
			lease, err := locker.Acquire(t.Context(), mode, nil)
			require.NoError(t, err)
			end := other.hold(t, mode, touchRow)
			freed := async(t, func() (struct{}, error) { return struct{}{}, lease.Release(t.Context()) })
			other.queued(t)
			end("commit")
			<-freed
			require.Zero(t, other.look(t, mode))
		}
		require.Len(t, s.log(t, collision), before+releases, mode)
	}
}

// TestCollisionsEndWithTheWait, should they never end by themselves.
func TestCollisionsEndWithTheWait(t *testing.T) {
	for _, code := range []string{"40001", "40P01"} {
		n := newNode(t, postgres.Config{})
		n.exec(t, `create function public.collide() returns trigger language plpgsql as $$ begin raise sqlstate '`+code+`'; end $$`)
		n.exec(t, `create trigger collide before insert on caskeleton.lock_lease execute function public.collide()`)
		locker, err := lock.New(n.locks, nil)
		require.NoError(t, err)
		_, err = locker.Acquire(t.Context(), "k", &lock.AcquireOptions{Wait: 300 * time.Millisecond})
		require.ErrorIs(t, err, fault.LockAcquisitionTimeout, code)
		n.exec(t, `drop trigger collide on caskeleton.lock_lease`)
		_, err = locker.Acquire(t.Context(), "k", nil)
		require.NoError(t, err, "it goes on where it may")
	}
}
