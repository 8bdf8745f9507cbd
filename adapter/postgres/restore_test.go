package postgres_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/tx"
)

// Nobody inherits the role, the limits or the search_path of whoever had the connection before.
func TestWhatIsSetDoesNotReachTheNextUser(t *testing.T) {
	const state = `select concat_ws(' ', current_setting('search_path') = '', current_setting('default_transaction_read_only'), current_setting('default_transaction_isolation'),
		current_setting('statement_timeout'), current_setting('lock_timeout'), current_user = session_user, session_user = $1::text, current_setting('timezone'), coalesce(current_setting('app.tenant', true), ''))`
	texts := []string{
		"set search_path = pg_catalog", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "set statement_timeout = 0", "set lock_timeout to default",
		"set role pg_monitor", "set session authorization pg_monitor", "set time zone 'Asia/Seoul'", "set app.tenant = 'eve'", "reset all",
		"-- name: Role :exec\n/* for now; */ set role pg_monitor", "deallocate all", "discard plans",
	}
	several := []string{"select 1; set role pg_monitor", "set local lock_timeout = 1; set\nrole pg_monitor"}
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := open(t, postgres.Config{DSN: pgtest.DSN(t), ExecMode: mode, MaxConns: 1})
			runner, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			me := get[string](t, db, "select session_user::text")
			is := get[string](t, db, state, me)
			pid := backend(t, db)
			for way, do := range map[string]func(q postgres.DBTX, sql string) error{
				"Exec": func(q postgres.DBTX, sql string) error { _, err := q.Exec(t.Context(), sql); return err },
				"a mode": func(q postgres.DBTX, sql string) error {
					_, err := q.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
					return err
				},
				"Query": func(q postgres.DBTX, sql string) error {
					rows, err := q.Query(t.Context(), sql)
					rows.Close()
					return err
				},
				"SendBatch": func(q postgres.DBTX, sql string) error {
					b := &pgx.Batch{}
					b.Queue(sql)
					return q.(postgres.Batcher).SendBatch(t.Context(), b).Close()
				},
			} {
				for i, sql := range append(texts, several...) {
					if i >= len(texts) && way != "Exec" && way != "a mode" {
						continue // these take one statement
					}
					require.NoError(t, runner.InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
						q, err := postgres.Querier(w)
						require.NoError(t, err)
						return do(q, sql)
					}), "%s: %s", way, sql)
					require.Equal(t, is, get[string](t, db, state, me), "%s in a transaction: %s", way, sql)
					require.NoError(t, do(db, sql), "%s: %s", way, sql)
					require.Equal(t, is, get[string](t, db, state, me), "%s: %s", way, sql)
				}
			}
			require.NoError(t, inTx(t, db, tx.Options{}, func(q transaction) error { exec(t, q, "deallocate all"); return nil }))
			require.Equal(t, is, get[string](t, db, state, me), "no rollback brings statements back")
			exec(t, db, "discard all")
			require.NoError(t, inTx(t, db, tx.Options{}, func(q transaction) error { require.Equal(t, is, get[string](t, q, state, me)); return nil }))
			require.Equal(t, pid, backend(t, db), "the connection is kept")
		})
	}
}

func TestWhatEndsWithTheTransactionCostsNothing(t *testing.T) {
	for sql, outlasts := range map[string]bool{
		"set role x": true, " \n set x = 1": true, "reset x": true, "Discard All": true, "deallocate s": true, "/* a */ set x = 1": true, "-- a\nset x = 1": true,
		"select 1; reset role": true, "select ';'; set x = 1": true, "set local x = 1; set x = 1": true, "set/**/x=1": true, "set session x = 1": true,
		"set local x = 1": false, "set transaction isolation level serializable": false, "set constraints all deferred": false, "SET\n-- a\nLOCAL x = 1": false,
		"select 1": false, "update t set x = 1": false, "select set_config('x', '1', false)": false, "settle": false, "select 1; set local x = 1;": false, "": false, ";": false,
	} {
		require.Equal(t, outlasts, postgres.Outlasts(sql), sql)
	}
}
