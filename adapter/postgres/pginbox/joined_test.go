package pginbox_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pginbox"
	"caskeleton.dev/adapter/postgres/pgtest"
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

func TestJoinedStatementsTakeOnlyTypesThatEveryDriverCanSend(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "", postgres.Config{}, nil)
	pgtest.RequirePortable(t, f.dsn, pginbox.JoinedSQL...)
}
