package memory_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/idempotency/idempotencytest"
	"caskeleton.dev/tx"
)

func TestRecordsConform(t *testing.T) {
	idempotencytest.TestDriver(t, records())
}

func records() idempotencytest.Harness {
	return idempotencytest.Harness{New: func(t *testing.T) idempotencytest.Store {
		t.Helper()
		var ahead atomic.Int64
		d := memory.NewRecords(&memory.RecordsOptions{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		runner, err := tx.NewRunner(memory.Transactions{}, nil)
		require.NoError(t, err)
		return idempotencytest.Store{Driver: d, Runner: runner, Pass: func(_ context.Context, d time.Duration) error {
			ahead.Add(int64(d))
			return nil
		}}
	}}
}

func TestRecordsFitTheModel(t *testing.T) { idempotencytest.TestModel(t, records()) }

func TestHistoryOfRecords(t *testing.T) { idempotencytest.TestHistory(t, records(), nil) }
