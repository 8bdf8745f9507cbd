package pgidempotency_test

import (
	"context"
	"testing"
	"time"

	"caskeleton.dev/idempotency/idempotencytest"
)

func TestConformance(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) { idempotencytest.TestDriver(t, harness(mode)) })
	}
}

func harness(mode string) idempotencytest.Harness {
	return idempotencytest.Harness{New: func(t *testing.T) idempotencytest.Store {
		t.Helper()
		f := newFixture(t, mode)
		return idempotencytest.Store{Driver: f.records, Runner: f.runner, Pass: f.pass}
	}}
}

// pass makes all records be as if d had gone by.
func (f *fixture) pass(ctx context.Context, d time.Duration) error {
	_, err := f.db.Exec(ctx, `update caskeleton.idempotency_record set lease_expires_at = lease_expires_at - t.d, expires_at = expires_at - t.d,
		created_at = created_at - t.d, updated_at = updated_at - t.d, executing_since = executing_since - t.d
		from (select $1::bigint * interval '1 microsecond' as d) t`, d.Microseconds())
	return err
}

func TestModel(t *testing.T) { idempotencytest.TestModel(t, harness("cache_statement")) }

func TestHistory(t *testing.T) { idempotencytest.TestHistory(t, harness("cache_statement"), nil) }

// What is cut may have taken effect or not.
func TestHistoryWithCuts(t *testing.T) {
	f := newFixture(t, "cache_statement")
	h := idempotencytest.Harness{New: func(*testing.T) idempotencytest.Store {
		return idempotencytest.Store{Driver: f.records, Runner: f.runner, Pass: f.pass}
	}}
	idempotencytest.TestHistory(t, h, &idempotencytest.HistoryOptions{Fault: func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
		_, _ = f.db.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid() order by random() limit 1`) // it may be cut itself
	}})
}
