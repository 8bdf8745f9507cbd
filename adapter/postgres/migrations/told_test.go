package migrations

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// The server's message, detail and context repeat values; the file, the place in it and the SQLSTATE are enough to find them.
func TestNoValueReachesAnErrorOrTheLog(t *testing.T) {
	t.Parallel()
	seed := createOrders + "insert into orders.order_line values (1, 'canary'), (2, 'canary');\n"
	for name, c := range map[string]struct {
		body  string
		wants []string
	}{
		"message": {"select 1;\nalter table orders.order_line alter column sku type int using sku::int;\n", []string{"00002_b.sql failed, nothing of it was kept (in or after statement 2)", "SQLSTATE 22P02"}},
		"detail":  {"create unique index order_line_sku on orders.order_line (sku);\n", []string{"statement 1)", "SQLSTATE 23505", "schema=orders table=order_line constraint=order_line_sku"}},
		"context": {"do $$ begin perform 'canary'::int; end $$;\n", []string{"statement 1", "SQLSTATE 22P02"}},
		"raised":  {"do $$ begin raise 'canary'; end $$;\n", []string{"SQLSTATE P0001"}},
		"place":   {"select canary;\n", []string{"statement 1, character 8)", "SQLSTATE 42703"}},
		"index":   {"-- +goose NO TRANSACTION\ncreate unique index concurrently if not exists order_line_sku on orders.order_line (sku);\n", []string{"statement 1)", "it ran outside", "SQLSTATE 23505"}},
		"commit":  {"alter table orders.order_line add unique (sku) deferrable initially deferred;\n", []string{"statement 1", "SQLSTATE 23505"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := emptyDSN(t)
			var log logBuffer
			base := orders("1_a", seed)
			up(t, dsn, base)
			_, err := migrator(t, dsn, &Options{Logger: log.logger()}, with(base, "2_b", c.body)).Up(t.Context())
			for _, want := range c.wants {
				require.ErrorContains(t, err, want)
			}
			require.NotContains(t, err.Error(), "canary")
			require.NotContains(t, fmt.Sprintf("%+v %#v", err, err), "canary")
			require.NotContains(t, log.String(), "canary")
			_, found := errors.AsType[*pgconn.PgError](err)
			require.True(t, found, "for whoever must look")
		})
	}
}

// The migration lock is the session's, and all of its advisory locks can be given up in one call.
func TestNewRefusesSessionLocks(t *testing.T) {
	t.Parallel()
	for _, call := range []string{
		"select pg_advisory_unlock_all();",
		"SELECT PG_CATALOG.PG_ADVISORY_UNLOCK(1, 2);",
		"select pg_advisory_unlock_shared(1);",
		"select pg_advisory_lock(1);",
		"select pg_advisory_lock_shared(1);",
		"select pg_try_advisory_lock(1);",
		"do $$ begin perform pg_advisory_unlock_all(); end $$;",
		"-- +goose NO TRANSACTION\ndiscard  all;",
	} {
		_, err := New(anyDSN, []Stream{orders("1_a", call)}, nil)
		require.ErrorContains(t, err, "stream orders: 00001_a.sql: calls", call)
		require.ErrorContains(t, err, "the migration lock is one of the session's advisory locks", call)
	}
	for _, fine := range []string{
		"select pg_advisory_xact_lock(1);",
		"select 1; -- pg_advisory_unlock_all()",
		"comment on schema orders is 'pg_advisory_unlock_all()';",
		"create function orders.f() returns void language sql as $$ select pg_advisory_lock(1) $$;", // called later
	} {
		_, err := New(anyDSN, []Stream{orders("1_a", fine)}, nil)
		require.NoError(t, err, fine)
	}
}
