package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/tx"
)

// COMMITs that fail on a real server. The table of outcomes is in commit_test.go.
func TestFailedCommits(t *testing.T) {
	const insert = "insert into shop.parents (id) values ($1)"
	cases := []struct {
		name   string
		before func(t *testing.T, db *postgres.DB, c transaction) context.Context
		state  string
		want   error
	}{
		{"deferred constraint", func(t *testing.T, _ *postgres.DB, c transaction) context.Context {
			t.Helper()
			exec(t, c, "update shop.items set code = $1 where id = 2", "A")
			return t.Context()
		}, "23505", fault.DBUniqueViolation},
		{"swallowed error", func(t *testing.T, _ *postgres.DB, c transaction) context.Context {
			t.Helper()
			_, err := c.Exec(t.Context(), insert, 1)
			require.ErrorIs(t, err, fault.DBUniqueViolation)
			return t.Context()
		}, "", tx.ErrRollbackOnly},
		{"idle for too long", func(t *testing.T, db *postgres.DB, c transaction) context.Context {
			t.Helper()
			pid := backend(t, c)
			exec(t, c, "set local idle_in_transaction_session_timeout = '20ms'")
			waitGone(t, db, pid)
			return t.Context()
		}, "25P03", fault.DBTXTimeout},
		// The server's FATAL is read only after COMMIT was written, so that the client cannot tell on which side of it the session ended.
		{"terminated before COMMIT was sent", func(t *testing.T, db *postgres.DB, c transaction) context.Context {
			t.Helper()
			pid := backend(t, c)
			exec(t, db, "select pg_terminate_backend($1)", pid)
			waitGone(t, db, pid)
			return t.Context()
		}, "57P01", fault.DBCommitUnknown},
		{"context canceled before", func(t *testing.T, _ *postgres.DB, _ transaction) context.Context {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx
		}, "", context.Canceled},
		{"deadline before", func(t *testing.T, _ *postgres.DB, _ transaction) context.Context {
			t.Helper()
			ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
			t.Cleanup(cancel)
			return ctx
		}, "", fault.DBStatementTimeout},
	}
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			for _, k := range cases {
				c := begin(t, db, tx.BeginOptions{})
				exec(t, c, insert, 99)
				err := c.Commit(k.before(t, db, c))
				require.ErrorIs(t, err, k.want, k.name)
				require.Equal(t, k.state, sqlstate(err), k.name)
				require.Equal(t, errors.Is(k.want, fault.DBCommitUnknown), errors.Is(err, fault.DBCommitUnknown), k.name)
				require.Eventually(t, func() bool { return db.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond, k.name)
				require.Zero(t, get[int64](t, db, "select count(*) from shop.parents where id = 99"), k.name)
			}
		})
	}
}

// Wherever a COMMIT is cut off, the verdict is that nobody knows, and what is there is the whole transaction or nothing.
func TestCommitsThatAreCutOff(t *testing.T) {
	direct := shop(t, postgres.Config{})
	p := proxytest.New(t, direct.Config().DSN)
	db := open(t, postgres.Config{DSN: p.DSN()})
	for cut, want := range map[proxytest.Mode]int64{proxytest.Before: 0, proxytest.After: 2, proxytest.OnAnswer: 2} {
		exec(t, direct, "delete from shop.parents where id > 90")
		c := begin(t, db, tx.BeginOptions{})
		pid := backend(t, c)
		exec(t, c, "insert into shop.parents (id) values (98), (99)")
		p.Break(cut, "commit\x00")
		require.ErrorIs(t, c.Commit(t.Context()), fault.DBCommitUnknown, "cut %s", cut)
		waitGone(t, direct, pid)
		require.Equal(t, want, get[int64](t, direct, "select count(*) from shop.parents where id > 90"), "cut %s", cut)
	}
}

func TestCommitOfAConnectionThatWasLost(t *testing.T) {
	db := shop(t, postgres.Config{})
	c := begin(t, db, tx.BeginOptions{})
	pid := backend(t, c)
	exec(t, db, "select pg_terminate_backend($1)", pid)
	waitGone(t, db, pid)
	_, err := c.Exec(t.Context(), "select 1")
	require.ErrorIs(t, err, fault.DBUnavailable)
	err = c.Commit(t.Context())
	require.ErrorContains(t, err, "connection is closed")
	require.NotErrorIs(t, err, fault.DBCommitUnknown, "COMMIT was never sent")
}

func TestCommitWithRowsLeftOpen(t *testing.T) {
	db := shop(t, postgres.Config{})
	c := begin(t, db, tx.BeginOptions{})
	exec(t, c, "insert into shop.parents (id) values (99)")
	rows, err := c.Query(t.Context(), "select generate_series(1, 100000)")
	require.NoError(t, err)
	require.True(t, rows.Next())
	err = c.Commit(t.Context())
	require.ErrorContains(t, err, "close rows")
	require.NotErrorIs(t, err, fault.DBCommitUnknown, "COMMIT was never sent")
	require.Zero(t, get[int64](t, db, "select count(*) from shop.parents where id = 99"))
	require.Eventually(t, func() bool { return db.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond)
}

// A serializable transaction may fail only at COMMIT.
func TestSerializationFailureAtCommit(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			o := tx.BeginOptions{Options: tx.Options{Isolation: tx.Serializable}}
			a, b := begin(t, db, o), begin(t, db, o)
			for _, c := range []transaction{a, b} { // write skew: each reads what the other writes
				get[int64](t, c, "select sum(qty)::int8 from shop.items")
			}
			exec(t, a, "update shop.items set qty = 2 where id = $1", 1)
			exec(t, b, "update shop.items set qty = 2 where id = $1", 2)
			require.NoError(t, a.Commit(t.Context()))
			err := b.Commit(t.Context())
			require.Equal(t, "40001", sqlstate(err))
			require.ErrorIs(t, err, fault.DBSerializationFailure)
		})
	}
}
