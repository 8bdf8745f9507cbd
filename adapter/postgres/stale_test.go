package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// A migration under running sessions: the result type of a prepared "select *" changes.
func TestStalePlanIsTriedOnceMore(t *testing.T) {
	const read = "select * from shop.parents where id = $1"
	const write = "update shop.parents set id = id where id = $1 returning *"
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			migrator := shop(t, postgres.Config{ExecMode: mode})
			// One connection, so that the statement meets its old plan. pgx runs a statement without arguments unprepared.
			db := open(t, sameDatabase(migrator, postgres.Config{MaxConns: 1}))
			pid := backend(t, db)
			added := 0
			alter := func() {
				added++
				exec(t, migrator, fmt.Sprintf("alter table shop.parents add column c%d text", added))
			}
			calls := map[string]func(sql string) error{
				"Exec": func(sql string) error { _, err := db.Exec(t.Context(), sql, 1); return err },
				"Query": func(sql string) error {
					n, err := query(t, db, sql, 1)
					require.Equal(t, 1, n)
					return err
				},
				"QueryRow": func(sql string) error { return db.QueryRow(t.Context(), sql, 1).Scan(make([]any, 1+added)...) },
				"Close alone": func(sql string) error {
					rows, err := db.Query(t.Context(), sql, 1)
					require.NoError(t, err)
					rows.Close()
					return rows.Err()
				},
			}
			if db.Config().ExecMode == "cache_describe" {
				staleDescription(t, db, alter)
				return
			}
			for name, call := range calls {
				for _, sql := range []string{read, write} {
					require.NoError(t, call(sql), name)
					alter()
					require.NoError(t, call(sql), name)
				}
			}
			require.Equal(t, pid, backend(t, db), "on the same connection")
		})
	}
}

// A description that pgx has cached shows as a protocol violation, which the table gives to DB_UNAVAILABLE: the caller's retry succeeds.
func staleDescription(t *testing.T, db *postgres.DB, alter func()) {
	t.Helper()
	read := func() error { _, err := query(t, db, "select * from shop.parents where id = $1", 1); return err }
	alter() // with one column, its format would do for all
	require.NoError(t, read())
	alter()
	err := read()
	require.Equal(t, "08P01", sqlstate(err))
	require.ErrorIs(t, err, fault.DBUnavailable)
	require.True(t, fault.Retryable(err))
	require.NoError(t, read())
}

func TestForgottenStatementIsTriedOnceMore(t *testing.T) {
	db := shop(t, postgres.Config{MaxConns: 1, ExecMode: "cache_statement"})
	for range 2 {
		require.EqualValues(t, 1, get[int64](t, db, "select id from shop.parents where id = $1", 1))
		exec(t, db, `do $$ begin execute 'deallocate all'; end $$`) // unseen, as a pooler's server reset
	}
}

func TestStalePlanInATransactionIsReported(t *testing.T) {
	migrator := shop(t, postgres.Config{})
	db := open(t, sameDatabase(migrator, postgres.Config{MaxConns: 1, ExecMode: "cache_statement"}))
	read := func(q transaction) error {
		_, err := query(t, q, "select * from shop.parents where id = $1", 1)
		return err
	}
	require.NoError(t, inTx(t, db, tx.Options{}, read))
	exec(t, migrator, "alter table shop.parents add column extra text")
	err := inTx(t, db, tx.Options{}, read)
	require.Equal(t, "0A000", sqlstate(err))
	require.ErrorIs(t, err, fault.DBStalePlan)
	require.True(t, fault.Retryable(err))
	require.NoError(t, inTx(t, db, tx.Options{}, read), "the next one has a new plan")
}

// Whatever else fails is run once: this one counts its runs in a sequence, which no rollback takes back.
func TestOtherErrorsAreNotTriedAgain(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			exec(t, db, "create sequence shop.runs")
			_, err := db.Exec(t.Context(), "insert into shop.parents (id) select $1::int8 where nextval('shop.runs') > 0", 1)
			require.ErrorIs(t, err, fault.DBUniqueViolation)
			require.EqualValues(t, 1, get[int64](t, db, "select last_value from shop.runs"))
		})
	}
}

// A pooler that loses statements loses the next one too: whoever tries for ever holds a connection for ever.
func TestWhatStaysStaleIsTriedOnceMoreAndReported(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode, MaxConns: 1})
			exec(t, db, `create sequence shop.tries`)
			exec(t, db, `create function shop.lost() returns int8 language plpgsql as $$ begin
				perform nextval('shop.tries'); raise exception 'x' using errcode = '26000'; end $$`)
			for way, do := range map[string]func() error{
				"Exec":     func() error { _, err := db.Exec(t.Context(), "select shop.lost()"); return err },
				"QueryRow": func() error { return db.QueryRow(t.Context(), "select shop.lost()").Scan(new(int64)) },
				"Query": func() error {
					rows, err := db.Query(t.Context(), "select shop.lost()")
					rows.Close()
					return errors.Join(err, rows.Err())
				},
			} {
				exec(t, db, "select setval('shop.tries', 1, false)")
				require.ErrorIs(t, do(), fault.DBStalePlan, way)
				require.EqualValues(t, 2, get[int64](t, db, "select last_value from shop.tries"), way)
			}
		})
	}
}
