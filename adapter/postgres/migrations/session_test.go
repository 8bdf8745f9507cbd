package migrations

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
)

func TestFilesRunWithAnEmptySearchPath(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	execSQL(t, dsn, `do $$ begin execute format('alter database %I set search_path = public', current_database());
		execute format('alter database %I set statement_timeout = 12345', current_database()); end $$`)
	_, err := migrator(t, dsn, nil, orders("1_order", "create table order_line (id int);\n")).Up(t.Context())
	require.ErrorContains(t, err, "SQLSTATE 3F000")

	s := orders("1_order", "create table orders.seen as select current_setting('search_path') as path, current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock;\n")
	up(t, dsn, s)
	require.Equal(t, `, 0, 5s`, query[string](t, dsn, `select path || ', ' || statement || ', ' || lock from orders.seen`))
}

func TestASettingOfAFileEndsWithIt(t *testing.T) {
	t.Parallel()
	done, err := migrator(t, emptyDSN(t), nil, orders("1_a", "set search_path = orders;\n", "2_b", "create table b (id int);\n")).Up(t.Context())
	require.ErrorContains(t, err, "00002_b.sql failed")
	require.ErrorContains(t, err, "SQLSTATE 3F000", "as in a run that begins with the second file")
	require.Equal(t, afterCore("orders 00001_a.sql"), names(done))
}

func TestSettingsOfThePoolInTheDSNAreNotTheServers(t *testing.T) {
	t.Parallel()
	require.Len(t, up(t, emptyDSN(t)+"&pool_max_conns=5&pool_max_conn_lifetime=1h", Idempotency()), len(kitFiles))
}

func TestEveryExecModeInTheDSN(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		u, err := url.Parse(emptyDSN(t))
		require.NoError(t, err)
		u.RawQuery += "&default_query_exec_mode=" + mode
		require.Len(t, up(t, u.String(), Idempotency()), len(kitFiles), mode)
	}
}

func TestNothingOfTheDSNIsInAnError(t *testing.T) {
	t.Parallel()
	_, err := New("postgres://me:hunter2@db.internal:port/x", nil, nil)
	require.ErrorContains(t, err, "the DSN cannot be read")
	for _, dsn := range []string{
		"postgres://someone:hunter2@127.0.0.1:1/secretdb?sslmode=disable",
		"postgres://someone:hunter2@no-such-host.invalid:1/secretdb",
	} {
		m := migrator(t, dsn, nil)
		_, err = m.Up(t.Context())
		require.ErrorIs(t, err, fault.DBUnavailable)
		for _, part := range []string{"someone", "hunter2", "127.0.0.1", "no-such-host", "secretdb"} {
			require.NotContains(t, err.Error(), part)
		}
		require.ErrorIs(t, m.Verify(t.Context()), fault.DBUnavailable)
	}
	_, err = migrator(t, withDatabase(t, emptyDSN(t), "no_such_database"), nil).Up(t.Context())
	require.ErrorIs(t, err, fault.DBAccessDenied)
	require.NotContains(t, err.Error(), "no_such_database")
}

func TestAFailedConnectHasTheCodeOfItsSQLSTATE(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		setting string // of the session, which the server refuses
		state   string
		code    fault.Code
	}{
		{"work_mem=canary", "22023", fault.DBInvalidData},
		{"no_such_setting=canary", "42704", fault.Internal}, // nobody registered it: no DB_* code
	} {
		_, err := migrator(t, emptyDSN(t)+"&"+c.setting, nil).Up(t.Context())
		require.ErrorContains(t, err, "postgres: connect: SQLSTATE "+c.state)
		require.Equal(t, c.code, fault.CodeOf(err))
		require.NotContains(t, err.Error(), "canary")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := migrator(t, emptyDSN(t), nil).Up(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, fault.Internal, fault.CodeOf(err))
}

func TestASessionIsNeverReplaced(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	db, err := migrator(t, dsn, nil).open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	execSQL(t, dsn, `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and application_name = 'caskeleton-migrations'`)
	_, err = db.ExecContext(t.Context(), `select 1`)
	require.Error(t, err)
	_, err = db.ExecContext(t.Context(), `select 1`)
	require.ErrorIs(t, err, errSessionLost, "a new session would not have the lock")
}
