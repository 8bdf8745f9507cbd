package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	locktest.TestDriver(t, harness())
}

func TestHistory(t *testing.T) {
	locktest.TestHistory(t, harness(), nil)
}

func harness() locktest.Harness {
	return locktest.Harness{New: func(*testing.T) locktest.Store {
		d := memory.NewLocks(nil)
		return locktest.Store{Driver: d, Other: d, Expire: func(_ context.Context, k lock.Key) error {
			d.Expire(k)
			return nil
		}}
	}}
}

func TestLeasesPassByTheGivenClock(t *testing.T) {
	now := time.Date(2026, 3, 29, 1, 59, 59, 0, time.UTC)
	d := memory.NewLocks(&memory.LocksOptions{Now: func() time.Time { return now }})
	k := lock.Key{Region: "r", Name: "k"}
	_, err := d.Acquire(t.Context(), k, lock.Token{1}, time.Minute, false)
	require.NoError(t, err)
	now = now.Add(time.Minute - 1)
	h, err := d.Acquire(t.Context(), k, lock.Token{2}, time.Minute, false)
	require.NoError(t, err)
	require.Equal(t, lock.Holder{Held: true, Left: 1}, h)
	now = now.Add(1)
	h, err = d.Acquire(t.Context(), k, lock.Token{2}, time.Minute, false)
	require.NoError(t, err)
	require.Equal(t, lock.Holder{}, h)
}

// TestWhatCrashedHoldersLeaveIsBounded: a key that is never used again has no one else to clear it.
func TestWhatCrashedHoldersLeaveIsBounded(t *testing.T) {
	now := time.Unix(0, 0)
	d := memory.NewLocks(&memory.LocksOptions{Now: func() time.Time { return now }})
	for i := range 50_000 {
		now = now.Add(time.Second)
		_, err := d.Acquire(t.Context(), lock.Key{Name: fmt.Sprint(i)}, lock.Token{1}, 1000*time.Second, false)
		require.NoError(t, err)
	}
	require.Less(t, d.Len(), 3000)
	h, err := d.Look(t.Context(), lock.Key{Name: "49999"})
	require.NoError(t, err)
	require.True(t, h.Held)
}
