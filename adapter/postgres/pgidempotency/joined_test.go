package pgidempotency_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// Who claims with the driver may store the answer in a transaction of its own.
func TestCompleteInATransactionOfACaller(t *testing.T) {
	t.Parallel()
	for _, mode := range execModes {
		f := newFixture(t, mode)
		cfg, err := pgx.ParseConfig(f.dsn)
		require.NoError(t, err)
		pool := stdlib.OpenDB(*cfg)
		t.Cleanup(func() { _ = pool.Close() })
		held := f.claim(t, request("node"))
		for _, commit := range []bool{false, true} {
			h, err := pool.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			tr, j, err := postgres.Wrap(t.Context(), h)
			require.NoError(t, err)
			require.NoError(t, f.records.Start(t.Context(), tr, held, nil))
			require.NoError(t, f.records.Complete(t.Context(), tr, held, idempotency.Answer{Payload: []byte("answer")}))
			require.ErrorIs(t, f.records.Complete(t.Context(), tr, held, idempotency.Answer{Payload: []byte("again")}), idempotency.ErrStale)
			if !commit {
				require.NoError(t, h.Rollback())
				j.RolledBack()
				continue
			}
			require.NoError(t, h.Commit())
			require.NoError(t, j.Committed(t.Context()))
		}
		rec, made, err := f.records.Claim(t.Context(), request("node"))
		require.NoError(t, err)
		require.False(t, made)
		require.Equal(t, idempotency.Completed, rec.State)
		require.Equal(t, "answer", string(rec.Payload))
	}
}

func TestJoinedStatementsTakeOnlyTypesThatEveryDriverCanSend(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	pgtest.RequirePortable(t, f.dsn, pgidempotency.JoinedSQL...)
}

// Do ties its answer to a transaction of its own, which cannot be within that of a caller.
func TestDoIsRefusedInATransactionOfACaller(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	conn, err := pgx.Connect(t.Context(), f.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	h, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, j, err := postgres.Wrap(t.Context(), h)
	require.NoError(t, err)
	ctx, g := j.Context(t.Context(), f.runner), f.newGuard(t, nil)
	_, err = idempotency.Do(ctx, g, key("k"), idempotency.Fingerprint{}, func(context.Context, *tx.Tx) (string, error) { return "x", nil })
	require.ErrorIs(t, err, tx.ErrNestedRoot)
	_, err = idempotency.DoExternal(ctx, g, key("k"), idempotency.Fingerprint{}, func(context.Context, *idempotency.Execution) (string, error) { return "x", nil })
	require.ErrorIs(t, err, tx.ErrNestedRoot)
	require.NoError(t, h.Rollback(t.Context()))
	j.RolledBack()
	_, err = g.Show(t.Context(), key("k"))
	require.ErrorIs(t, err, idempotency.ErrNoRecord)
}
