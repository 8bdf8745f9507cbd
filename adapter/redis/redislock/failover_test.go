//go:build e2e

package redislock_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/redistest"
	"caskeleton.dev/lock"
)

// pair is a primary and its replica behind an address that moves, and the network between the two.
type pair struct {
	primary, replica *redistest.Server
	link, front      *redistest.Proxy
}

func newPair(t *testing.T) pair {
	t.Helper()
	p := pair{primary: start(t), replica: start(t)}
	p.link = redistest.NewProxy(t, p.primary.Addr())
	p.replica.ReplicaOf(p.link.Addr())
	p.front = redistest.NewProxy(t, p.primary.Addr())
	return p
}

func (p pair) failOver() {
	p.primary.Kill()
	p.replica.ReplicaOf("")
	p.front.Retarget(p.replica.Addr())
}

func TestALockThatTheReplicaKnowsOutlivesAFailover(t *testing.T) {
	p := newPair(t)
	l := locker(t, p.front.Addr())
	lease, err := l.Acquire(t.Context(), name, nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.replica.Do("DBSIZE") == "1" }, soon, instant, "the replica hears of the lock")
	p.failOver()
	require.Eventually(t, func() bool { return lease.Renew(t.Context(), long) == nil }, soon, instant, "the holder still holds")
	_, err = locker(t, p.front.Addr()).Acquire(t.Context(), name, &lock.AcquireOptions{})
	require.ErrorContains(t, err, "LOCK_ACQUISITION_TIMEOUT")
	require.NoError(t, lease.Release(t.Context()))
}

// This is what the package's first lines warn of: the replica has not heard of the lock, and the second grant is real. Both holders are told the truth.
func TestALockThatTheReplicaDidNotKnowIsGrantedTwiceAndReported(t *testing.T) {
	for _, told := range []string{"by renewing", "by releasing", "by releasing when the other is done"} {
		t.Run(told, func(t *testing.T) {
			p := newPair(t)
			p.link.Silence()
			first := locker(t, p.front.Addr())
			lease, err := first.Acquire(t.Context(), name, nil)
			require.NoError(t, err)
			p.failOver()
			require.Eventually(t, func() bool {
				other, err := first.Acquire(t.Context(), "another", &lock.AcquireOptions{})
				return err == nil && other.Release(t.Context()) == nil
			}, soon, instant, "the first holder connects to the new primary")
			second, err := locker(t, p.front.Addr()).Acquire(t.Context(), name, nil)
			require.NoError(t, err, "the new primary knows of no holder")

			switch told {
			case "by renewing":
				require.Eventually(t, func() bool { return errors.Is(lease.Renew(t.Context(), long), lock.ErrLeaseExpired) }, soon, instant)
				await(t, lease.Done(), "the end of the lease")
			case "by releasing when the other is done":
				require.NoError(t, second.Release(t.Context()))
			}
			require.ErrorIs(t, lease.Release(t.Context()), lock.ErrLeaseExpired)
			if told != "by releasing when the other is done" {
				require.NoError(t, second.Renew(t.Context(), long), "the second holder is left alone")
				require.NoError(t, second.Release(t.Context()))
			}
		})
	}
}
