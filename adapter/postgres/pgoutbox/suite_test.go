package pgoutbox_test

import (
	"context"
	"testing"

	"caskeleton.dev/outbox/outboxtest"
)

// TestConformance runs in the default mode and in the one that differs most from it; the other tests run in all.
func TestConformance(t *testing.T) {
	for _, mode := range []string{"cache_statement", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			outboxtest.TestDriver(t, outboxtest.DriverHarness{New: func(t *testing.T) outboxtest.Store {
				t.Helper()
				f := newFixture(t, mode)
				return outboxtest.Store{Driver: f.driver, Runner: f.runner, Expire: func(ctx context.Context) error {
					_, err := f.db.Exec(ctx, `update caskeleton.outbox_lane set due = clock_timestamp() - interval '1 second' where due is not null`)
					return err
				}}
			}})
		})
	}
}
