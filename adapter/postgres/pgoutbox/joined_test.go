package pgoutbox_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// theirs begins a transaction without the kit.
func theirs(t *testing.T, f *fixture, mode pgx.QueryExecMode, o *sql.TxOptions) *sql.Tx {
	t.Helper()
	cfg, err := pgx.ParseConfig(f.dsn)
	require.NoError(t, err)
	cfg.DefaultQueryExecMode = mode
	pool := stdlib.OpenDB(*cfg)
	t.Cleanup(func() { _ = pool.Close() })
	h, err := pool.BeginTx(t.Context(), o)
	require.NoError(t, err)
	return h
}

func wrap(t *testing.T, handle any) (*tx.Tx, *postgres.Joined) {
	t.Helper()
	tr, j, err := postgres.Wrap(t.Context(), handle)
	require.NoError(t, err)
	return tr, j
}

func TestAppendInATransactionOfDatabaseSQL(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for _, isolation := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			id := mode.String() + " " + isolation.String()
			h := theirs(t, f, mode, &sql.TxOptions{Isolation: isolation})
			tr, j := wrap(t, h)
			sent := event(id, "\x00\xff payload")
			sent.Headers, sent.AggregateVersion = map[string]string{"k": "v"}, 7
			sent.OccurredAt = time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
			require.NoError(t, f.outbox.Append(t.Context(), tr, sent, event(id, "")))
			require.Nil(t, f.row(t, lane(id)))
			require.NoError(t, h.Commit())
			require.Empty(t, f.outbox.Bell().Drain(), "nobody has said that it is committed")
			require.NoError(t, j.Committed(t.Context()))
			require.Equal(t, []outbox.Lane{lane(id)}, f.outbox.Bell().Drain())

			c := f.claimOne(t, request("relay"))
			require.Equal(t, []string{"\x00\xff payload", ""}, payloads(c))
			require.Equal(t, "v", c.Run[0].Headers["k"])
			require.EqualValues(t, 7, c.Run[0].AggregateVersion)
			require.True(t, sent.OccurredAt.Equal(c.Run[0].OccurredAt))
			f.settle(t, done(c))
		}
	}
	f.invariant(t)
}

func TestAppendInARolledBackTransactionOfACaller(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	h := theirs(t, f, pgx.QueryExecModeCacheStatement, nil)
	tr, j := wrap(t, h)
	require.NoError(t, f.outbox.Append(t.Context(), tr, event("a", "1")))
	require.NoError(t, h.Rollback())
	j.RolledBack()
	require.Empty(t, f.outbox.Bell().Drain())
	require.Zero(t, get[int](t, f, `select count(*) from caskeleton.outbox_event`))
	require.ErrorIs(t, f.outbox.Append(t.Context(), tr, event("a", "1")), tx.ErrDone)

	h = theirs(t, f, pgx.QueryExecModeCacheStatement, &sql.TxOptions{ReadOnly: true})
	tr, _ = wrap(t, h)
	require.ErrorIs(t, f.outbox.Append(t.Context(), tr, event("a", "1")), fault.TXReadOnly)
	require.NoError(t, h.Rollback())
}

func TestAppendInAPgxTransactionOfACaller(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	conn, err := pgx.Connect(t.Context(), f.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	h, err := conn.Begin(t.Context())
	require.NoError(t, err)
	tr, j := wrap(t, h)
	require.NoError(t, f.outbox.Append(t.Context(), tr, event("a", "1"), event("b", "2")))
	require.NoError(t, h.Commit(t.Context()))
	require.NoError(t, j.Committed(t.Context()))
	require.Len(t, f.outbox.Bell().Drain(), 2)
	require.Len(t, f.claim(t, request("relay")), 2)
}

func TestADuplicateIdInATransactionOfACaller(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	e := event("a", "1")
	e.ID = "0197c2a5-7d5e-7000-8000-000000000001"
	f.commit(t, e)
	h := theirs(t, f, pgx.QueryExecModeCacheStatement, nil)
	tr, j := wrap(t, h)
	require.ErrorIs(t, f.outbox.Append(t.Context(), tr, e), fault.OutboxEventDuplicate)
	require.Error(t, h.Commit())
	j.RolledBack()
}

func TestJoinedStatementsTakeOnlyTypesThatEveryDriverCanSend(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	pgtest.RequirePortable(t, f.dsn, pgoutbox.LockSQL, pgoutbox.LockRowSQL, pgoutbox.AppendSQL)
}
