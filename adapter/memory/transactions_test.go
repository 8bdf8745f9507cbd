package memory_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
	"caskeleton.dev/tx/txtest"
)

func TestTransactionsConform(t *testing.T) {
	txtest.TestDriver(t, txtest.Harness{New: func(*testing.T) txtest.Store {
		s := memory.NewSet()
		return txtest.Store{
			Driver: memory.Transactions{},
			Put:    func(_ context.Context, c tx.Conn, key string) error { return s.Put(c, key) },
			Has:    func(_ context.Context, key string) (bool, error) { return s.Has(key), nil },
		}
	}})
}

// As after any error of a statement.
func TestARefusedWriteFailsTheCommit(t *testing.T) {
	s := memory.NewSet()
	c, err := memory.Transactions{}.Begin(t.Context(), tx.BeginOptions{ReadOnly: true})
	require.NoError(t, err)
	require.ErrorIs(t, s.Put(c, "a"), fault.TXReadOnly)
	require.ErrorIs(t, c.Commit(t.Context()), fault.TXRollbackOnly)
}
