package pginbox_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pginbox"
	"caskeleton.dev/inbox"
)

// A consumer that begins its own transaction may claim in it.
func TestClaimInATransactionOfACaller(t *testing.T) {
	t.Parallel()
	for _, mode := range execModes {
		f := newFixture(t, mode, postgres.Config{}, nil)
		cfg, err := pgx.ParseConfig(f.dsn)
		require.NoError(t, err)
		pool := stdlib.OpenDB(*cfg)
		t.Cleanup(func() { _ = pool.Close() })
		claim := func(id string, commit bool) inbox.Verdict {
			h, err := pool.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			defer func() { _ = h.Rollback() }()
			tr, j, err := postgres.Wrap(t.Context(), h)
			require.NoError(t, err)
			v, err := f.messages.Claim(t.Context(), tr, "shipping", id)
			require.NoError(t, err)
			if commit {
				require.NoError(t, h.Commit())
				require.NoError(t, j.Committed(t.Context()))
			}
			return v
		}
		require.Equal(t, inbox.Fresh, claim("m1", false))
		require.Equal(t, inbox.Fresh, claim("m1", true), "nothing was left by the rollback")
		require.Equal(t, inbox.Done, claim("m1", true))
		_, err = f.messages.Attempt(t.Context(), "shipping", "m2")
		require.NoError(t, err)
		require.Equal(t, inbox.Retried, claim("m2", true))
		require.Equal(t, inbox.Done, claim("m2", true))
	}
}

// Drivers disagree about arrays, and about most other types.
func TestJoinedStatementsTakeOnlyTypesThatEveryDriverCanSend(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "", postgres.Config{}, nil)
	conn, err := pgx.Connect(t.Context(), f.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	for _, statement := range pginbox.JoinedSQL {
		d, err := conn.Prepare(t.Context(), "", statement)
		require.NoError(t, err)
		require.Subset(t, []uint32{pgtype.TextOID, pgtype.ByteaOID, pgtype.Int8OID, pgtype.BoolOID, pgtype.TimestamptzOID, pgtype.JSONBOID}, d.ParamOIDs, statement)
	}
}
