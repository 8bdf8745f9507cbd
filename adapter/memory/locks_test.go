package memory_test

import (
	"context"
	"testing"

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
