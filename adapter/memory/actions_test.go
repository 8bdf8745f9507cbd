package memory_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/audit/audittest"
	"caskeleton.dev/tx"
)

func TestActionsConform(t *testing.T) {
	audittest.TestDriver(t, audittest.Harness{New: func(t *testing.T) audittest.Store {
		t.Helper()
		runner, err := tx.NewRunner(memory.Transactions{}, nil)
		require.NoError(t, err)
		return audittest.Store{Driver: memory.NewActions(), Runner: runner}
	}})
}

func TestActionsEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := memory.NewActions().Of(ctx, "lock", "a", 1)
	require.ErrorIs(t, err, context.Canceled)
}
