package memory_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	locktest.TestDriver(t, harness())
}

// harness lets a lease pass by setting the clock. It never goes back, and a check never holds more than one key as it does so.
func harness() locktest.Harness {
	return locktest.Harness{New: func(*testing.T) locktest.Store {
		var skew atomic.Int64
		d := memory.NewLocks(&memory.LocksOptions{Now: func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }})
		return locktest.Store{Driver: d, Other: d, Expire: func(ctx context.Context, k lock.Key) error {
			h, err := d.Look(ctx, k)
			skew.Add(int64(h.Left))
			return err
		}}
	}}
}
