package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// One statement each, on a real server.
func TestStatementErrors(t *testing.T) {
	cases := []struct {
		state string
		code  fault.Code // the zero Code where there must be none
		sql   string
		args  []any
	}{
		{"23505", fault.DBUniqueViolation, "insert into shop.parents (id) values ($1)", []any{1}},
		{"23P01", fault.DBUniqueViolation, "insert into shop.items (id, name, slot) values ($1, $2, int8range(2, 3))", []any{3, "x"}},
		{"23503", fault.DBForeignKeyViolation, "insert into shop.items (id, name, parent_id) values ($1, $2, $3)", []any{3, "x", 99}},
		{"23503", fault.DBForeignKeyViolation, "delete from shop.parents where id = $1", []any{1}},
		{"23502", fault.DBNotNullViolation, "insert into shop.items (id) values ($1)", []any{3}},
		{"23514", fault.DBCheckViolation, "update shop.items set qty = $1 where id = 1", []any{-1}},
		{"23514", fault.DBServerFault, "insert into shop.parted (d) values ($1)", []any{10}},
		{"44000", fault.DBCheckViolation, "insert into shop.big_parents (id) values ($1)", []any{3}},
		{"22001", fault.DBInvalidData, "update shop.items set name = $1 where id = 1", []any{"longer than ten"}},
		{"22012", fault.DBInvalidData, "select 1 / $1::int8", []any{0}},
		{"22P02", fault.DBInvalidData, "select ($1::text)::int8", []any{"x"}},
		{"42P05", fault.DBStalePlan, "prepare twice as select 1; prepare twice as select 1", nil},
		{"26000", fault.DBStalePlan, "execute nothing", nil},
		{"0A000", fault.Code{}, "select count(*) from shop.parents for update", nil},
		{"53400", fault.DBServerFault, "set local temp_file_limit = '1kB'; set local work_mem = '64kB'; select i from generate_series(1, 100000) i order by i desc", nil},
		{"54011", fault.DBServerFault, "select 1" + strings.Repeat(", 1", 1664), nil},
		{"58P01", fault.DBServerFault, "select pg_read_file($1)", []any{"nothing-there"}},
		{"42601", fault.Code{}, "selec $1", []any{1}},
		{"42P01", fault.Code{}, "select id from items where id = $1", []any{1}}, // search_path is empty
		{"P0001", fault.Code{}, "do $$ begin raise exception 'x'; end $$", nil},
	}
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			for _, c := range cases {
				check := func(how string, err error) {
					t.Helper()
					require.Equal(t, c.state, sqlstate(err), how)
					want := c.code
					if want == (fault.Code{}) {
						want = fault.Internal
						require.NotErrorIs(t, err, fault.Internal, "no code at all")
					}
					require.Equal(t, want, fault.CodeOf(err), "%s of %s", how, c.state)
				}
				_, err := db.Exec(t.Context(), c.sql, c.args...)
				check("DB.Exec", err)
				check("Exec", inTx(t, db, tx.Options{}, func(q transaction) error { _, err := q.Exec(t.Context(), c.sql, c.args...); return err }))
				if strings.Contains(c.sql, "; ") {
					continue // Query takes one statement
				}
				_, err = query(t, db, c.sql, c.args...)
				check("DB.Query", err)
				var v any
				check("DB.QueryRow", db.QueryRow(t.Context(), c.sql, c.args...).Scan(&v))
				check("Query", inTx(t, db, tx.Options{}, func(q transaction) error { _, err := query(t, q, c.sql, c.args...); return err }))
				check("QueryRow", inTx(t, db, tx.Options{}, func(q transaction) error { return q.QueryRow(t.Context(), c.sql, c.args...).Scan(&v) }))
			}
		})
	}
}

// query reads all rows and returns how many, and the error of Query or of the end.
func query(t *testing.T, q postgres.DBTX, sql string, args ...any) (n int, _ error) {
	t.Helper()
	rows, err := q.Query(t.Context(), sql, args...)
	if err != nil {
		require.Equal(t, err, rows.Err(), "the rows carry the same error")
		return 0, err
	}
	for rows.Next() {
		n++
	}
	return n, rows.Err()
}

func TestSerializationFailure(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			err := inTx(t, db, tx.Options{Isolation: tx.RepeatableRead}, func(q transaction) error {
				get[int64](t, q, "select qty from shop.items where id = $1", 1)
				exec(t, db, "update shop.items set qty = 2 where id = $1", 1)
				_, err := q.Exec(t.Context(), "update shop.items set qty = 3 where id = $1", 1)
				return err
			})
			require.Equal(t, "40001", sqlstate(err))
			require.ErrorIs(t, err, fault.DBSerializationFailure)
		})
	}
}

func TestDeadlock(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			const update = "update shop.items set qty = qty + 1 where id = $1"
			a, b := begin(t, db, tx.BeginOptions{}), begin(t, db, tx.BeginOptions{})
			exec(t, a, "set local deadlock_timeout = '20ms'")
			exec(t, b, "set local deadlock_timeout = '10s'")
			exec(t, a, update, 1)
			exec(t, b, update, 2)
			pid := backend(t, b)
			second := make(chan error, 1)
			go func() {
				_, err := b.Exec(t.Context(), update, 1)
				second <- err
			}()
			eventually(t, db, "select cardinality(pg_blocking_pids($1::int4)) > 0", pid)
			_, err := a.Exec(t.Context(), update, 2)
			require.Equal(t, "40P01", sqlstate(err))
			require.ErrorIs(t, err, fault.DBDeadlock)
			require.NoError(t, a.Rollback(t.Context()))
			require.NoError(t, <-second)
			require.NoError(t, b.Rollback(t.Context()))
		})
	}
}

func TestLockTimeout(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			require.NoError(t, inTx(t, db, tx.Options{}, func(q transaction) error {
				exec(t, q, "update shop.items set qty = 2 where id = $1", 1)
				err := inTx(t, db, tx.Options{LockTimeout: 20 * time.Millisecond}, func(q transaction) error {
					_, err := q.Exec(t.Context(), "update shop.items set qty = 3 where id = $1", 1)
					return err
				})
				require.Equal(t, "55P03", sqlstate(err))
				require.ErrorIs(t, err, fault.DBLockTimeout)
				return nil
			}))
		})
	}
}

func TestCanceledByTheServer(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			err := inTx(t, db, tx.Options{StatementTimeout: 20 * time.Millisecond}, func(q transaction) error {
				_, err := q.Exec(t.Context(), "select pg_sleep($1)", 60)
				return err
			})
			require.Equal(t, "57014", sqlstate(err))
			require.ErrorIs(t, err, fault.DBQueryCanceled)

			err = inTx(t, db, tx.Options{}, func(q transaction) error {
				pid := backend(t, q)
				failed := make(chan error, 1)
				go func() {
					_, err := q.Exec(t.Context(), "select pg_sleep($1)", 60)
					failed <- err
				}()
				eventually(t, db, "select bool_or(pg_cancel_backend(pid)) from pg_stat_activity where pid = $1::int8 and wait_event = 'PgSleep'", pid)
				return <-failed
			})
			require.Equal(t, "57014", sqlstate(err))
			require.ErrorIs(t, err, fault.DBQueryCanceled)
		})
	}
}

func TestEndedByTheCaller(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			deadline, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := db.Exec(deadline, "select pg_sleep($1)", 60)
			require.ErrorIs(t, err, fault.DBStatementTimeout)
			require.ErrorIs(t, err, context.DeadlineExceeded)

			canceled, cancel := context.WithCancel(t.Context())
			c := begin(t, db, tx.BeginOptions{})
			pid := backend(t, c)
			failed := make(chan error, 1)
			go func() {
				var v any
				failed <- c.QueryRow(canceled, "select pg_sleep($1)", 60).Scan(&v)
			}()
			eventually(t, db, "select exists (select from pg_stat_activity where pid = $1::int8 and wait_event = 'PgSleep')", pid)
			cancel()
			require.Equal(t, context.Canceled, <-failed, "the context's error itself, without a code")
			require.NoError(t, c.Rollback(t.Context()), "the connection is gone, and so is the transaction")
		})
	}
}

func TestIdleTransaction(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			one := open(t, sameDatabase(db, postgres.Config{MaxConns: 1}))
			pid := backend(t, one)
			err := inTx(t, one, tx.Options{IdleTimeout: 20 * time.Millisecond}, func(q transaction) error {
				waitGone(t, db, pid)
				_, err := q.Exec(t.Context(), "select $1::int8", 1)
				return err
			})
			require.Equal(t, "25P03", sqlstate(err))
			require.ErrorIs(t, err, fault.DBTXTimeout)
		})
	}
}

func TestTerminated(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			err := inTx(t, db, tx.Options{}, func(q transaction) error {
				pid := backend(t, q)
				require.True(t, get[bool](t, db, "select pg_terminate_backend($1::int4)", pid))
				waitGone(t, db, pid)
				_, err := q.Exec(t.Context(), "select $1::int8", 1)
				return err
			})
			require.Equal(t, "57P01", sqlstate(err))
			require.ErrorIs(t, err, fault.DBUnavailable)
		})
	}
}

func TestInsufficientPrivilege(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			err := inTx(t, db, tx.Options{}, func(q transaction) error {
				exec(t, q, "set local role pg_monitor")
				_, err := q.Exec(t.Context(), "select from shop.items where id = $1", 1)
				return err
			})
			require.Equal(t, "42501", sqlstate(err))
			require.ErrorIs(t, err, fault.DBAccessDenied)
		})
	}
}
