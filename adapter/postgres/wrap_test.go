package postgres_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// caller is somebody who begins and commits without the kit.
type caller struct {
	handle           any
	commit, rollback func() error
}

// beginners are the ways in which a caller may have begun.
var beginners = map[string]func(t *testing.T, db *postgres.DB, isolation string) caller{
	"pgx": func(t *testing.T, db *postgres.DB, isolation string) caller {
		t.Helper()
		h, err := connect(t, db).BeginTx(t.Context(), pgx.TxOptions{BeginQuery: "begin isolation level " + isolation})
		require.NoError(t, err)
		return caller{h, func() error { return h.Commit(t.Context()) }, func() error { return h.Rollback(t.Context()) }}
	},
	"sql.Tx": func(t *testing.T, db *postgres.DB, isolation string) caller {
		t.Helper()
		h, err := openSQL(t, db).BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = h.ExecContext(t.Context(), "set transaction isolation level "+isolation)
		require.NoError(t, err)
		return caller{h, h.Commit, h.Rollback}
	},
	"sql.Conn": func(t *testing.T, db *postgres.DB, isolation string) caller {
		t.Helper()
		h, err := openSQL(t, db).Conn(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = h.Close() })
		run := func(sql string) func() error {
			return func() error { _, err := h.ExecContext(t.Context(), sql); return err }
		}
		require.NoError(t, run("begin isolation level "+isolation)())
		return caller{h, run("commit"), run("rollback")}
	},
	"embedded": func(t *testing.T, db *postgres.DB, isolation string) caller {
		t.Helper()
		h, err := openSQL(t, db).BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = h.ExecContext(t.Context(), "set transaction isolation level "+isolation)
		require.NoError(t, err)
		return caller{formatting{h}, h.Commit, h.Rollback}
	},
}

// formatting is a handle that puts arguments into the text itself, as bun's does.
type formatting struct{ *sql.Tx }

func (f formatting) ExecContext(ctx context.Context, query string, _ ...any) (sql.Result, error) {
	return f.Tx.ExecContext(ctx, query)
}

func (f formatting) QueryContext(ctx context.Context, query string, _ ...any) (*sql.Rows, error) {
	return f.Tx.QueryContext(ctx, query)
}

func connConfig(t *testing.T, db *postgres.DB) *pgx.ConnConfig {
	t.Helper()
	cfg, err := pgx.ParseConfig(db.Config().DSN)
	require.NoError(t, err)
	cfg.DefaultQueryExecMode = map[string]pgx.QueryExecMode{
		"cache_statement": pgx.QueryExecModeCacheStatement, "cache_describe": pgx.QueryExecModeCacheDescribe,
		"exec": pgx.QueryExecModeExec, "simple_protocol": pgx.QueryExecModeSimpleProtocol,
	}[db.Config().ExecMode]
	cfg.RuntimeParams["search_path"] = ""
	return cfg
}

func connect(t *testing.T, db *postgres.DB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), connConfig(t, db))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func openSQL(t *testing.T, db *postgres.DB) *sql.DB {
	t.Helper()
	pool := stdlib.OpenDB(*connConfig(t, db))
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// way is one of the ways to begin, in one exec mode.
type way struct {
	name  string
	db    *postgres.DB
	begin func(t *testing.T, db *postgres.DB, isolation string) caller
}

// ways returns all of them. Those of one mode share a database.
func ways(t *testing.T) []way {
	t.Helper()
	var all []way
	for _, mode := range execModes {
		db := shop(t, postgres.Config{ExecMode: mode})
		for name, begin := range beginners {
			all = append(all, way{name + " " + mode, db, begin})
		}
	}
	return all
}

// fresh undoes what the way before has left.
func (w way) fresh(t *testing.T) (*postgres.DB, func(isolation string) caller) {
	t.Helper()
	exec(t, w.db, `delete from shop.parents where id > 2; update shop.items set qty = 1`)
	return w.db, func(isolation string) caller { return w.begin(t, w.db, isolation) }
}

func wrap(t *testing.T, c caller) (*tx.Tx, *postgres.Joined, postgres.DBTX) {
	t.Helper()
	tr, j, err := postgres.Wrap(t.Context(), c.handle)
	require.NoError(t, err)
	q, err := postgres.Querier(tr)
	require.NoError(t, err)
	return tr, j, q
}

func parents(t *testing.T, db *postgres.DB) int64 {
	t.Helper()
	return get[int64](t, db, `select count(*) from shop.parents where id > 2`)
}

func TestWrapCommitsAndRollsBackWithItsCaller(t *testing.T) {
	t.Parallel()
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			db, begin := w.fresh(t)
			for _, end := range []string{"commit", "rollback"} {
				c := begin("read committed")
				tr, j, q := wrap(t, c)
				exec(t, q, `insert into shop.parents (id) values ($1)`, 3)
				var rang bool
				require.NoError(t, tr.AfterCommit(func(context.Context) error { rang = true; return nil }))
				require.Zero(t, parents(t, db), "it is the caller's transaction")
				require.ErrorIs(t, j.Committed(t.Context()), tx.ErrOpen)
				if end == "rollback" {
					require.NoError(t, c.rollback())
					j.RolledBack()
					require.False(t, rang)
					require.Zero(t, parents(t, db))
					continue
				}
				require.NoError(t, c.commit())
				require.False(t, rang)
				require.NoError(t, j.Committed(t.Context()))
				require.True(t, rang)
				require.EqualValues(t, 1, parents(t, db))
				exec(t, db, `delete from shop.parents where id = 3`)
				_, err := postgres.Querier(tr)
				require.ErrorIs(t, err, tx.ErrDone)
			}
		})
	}
}

func TestWrapRefusesWhatIsNoTransaction(t *testing.T) {
	t.Parallel()
	for _, mode := range execModes {
		db := shop(t, postgres.Config{ExecMode: mode})
		pool := openSQL(t, db)
		single, err := pool.Conn(t.Context())
		require.NoError(t, err)
		ended, err := pool.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, ended.Rollback())
		endedPgx, err := connect(t, db).Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, endedPgx.Rollback(t.Context()))
		for _, h := range []any{pool, single, ended, endedPgx} {
			_, _, err := postgres.Wrap(t.Context(), h)
			require.ErrorIs(t, err, postgres.ErrNoTransaction, "%s %T", mode, h)
		}
		require.NoError(t, single.Close())
	}
	for _, h := range []any{nil, (*sql.Tx)(nil), 1, &pgx.Conn{}, (*pgx.Conn)(nil)} {
		_, _, err := postgres.Wrap(t.Context(), h)
		require.ErrorContains(t, err, "pass the open transaction", "%T", h)
	}
}

func TestWrapOfAnAbortedTransaction(t *testing.T) {
	t.Parallel()
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			_, begin := w.fresh(t)
			c := begin("read committed")
			_, j, q := wrap(t, c)
			_, err := q.Exec(t.Context(), `insert into shop.parents (id) values ($1)`, 1)
			require.ErrorIs(t, err, fault.DBUniqueViolation)
			require.ErrorContains(t, err, "constraint=parents_pkey")
			require.NotContains(t, err.Error(), "Key (id)")
			require.ErrorIs(t, j.Committed(t.Context()), tx.ErrOpen)
			_, _, err = postgres.Wrap(t.Context(), c.handle)
			require.ErrorContains(t, err, "25P02")
		})
	}
}

func TestWrapFindsOutWhatTheTransactionIsLike(t *testing.T) {
	t.Parallel()
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			_, begin := w.fresh(t)
			for isolation, want := range map[string]tx.Isolation{
				"read uncommitted": tx.ReadCommitted, "read committed": tx.ReadCommitted, "repeatable read": tx.RepeatableRead, "serializable": tx.Serializable,
			} {
				c := begin(isolation)
				tr, _, _ := wrap(t, c)
				require.Equal(t, want, tr.Isolation())
				require.False(t, tr.ReadOnly())
				require.NoError(t, c.rollback())

				c = begin(isolation + ", read only")
				tr, _, q := wrap(t, c)
				require.Equal(t, want, tr.Isolation())
				require.True(t, tr.ReadOnly())
				_, err := q.Exec(t.Context(), `delete from shop.items where id = $1`, 1)
				require.ErrorIs(t, err, tx.ErrReadOnly)
				require.NoError(t, c.rollback())
			}
		})
	}
}
