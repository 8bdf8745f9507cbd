package migrations

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
)

func TestFilesRunUnderSettingsOfTheirOwn(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	u.RawQuery = "sslmode=disable&options=-c%20search_path%3Dpublic%20-c%20lock_timeout%3D1" // instead of the empty one that tests have
	for setting, value := range map[string]string{"search_path": "public", "statement_timeout": "12345", "idle_in_transaction_session_timeout": "12345", "timezone": "'Asia/Seoul'"} {
		execSQL(t, dsn, `do $$ begin execute format($f$alter database %I set `+setting+` = `+value+`$f$, current_database()); end $$`)
	}
	for _, dsn := range []string{dsn, u.String()} {
		_, err := migrator(t, dsn, nil, orders("1_order", "create table order_line (id int);\n")).Up(t.Context())
		require.ErrorContains(t, err, "SQLSTATE 3F000")
	}
	s := orders("1_order", `create table orders.seen as select concat_ws(', ', current_setting('search_path'), current_setting('statement_timeout'), current_setting('lock_timeout'),
		current_setting('idle_in_transaction_session_timeout'), current_setting('timezone')) as settings;`+"\n")
	up(t, u.String(), s)
	require.Equal(t, `, 0, 5s, 0, UTC`, query[string](t, dsn, `select settings from orders.seen`))
}

func TestASettingOfAFileEndsWithIt(t *testing.T) {
	t.Parallel()
	done, err := migrator(t, emptyDSN(t), nil, orders("1_a", "set search_path = orders;\n", "2_b", "create table b (id int);\n")).Up(t.Context())
	require.ErrorContains(t, err, "00002_b.sql failed")
	require.ErrorContains(t, err, "SQLSTATE 3F000", "as in a run that begins with the second file")
	require.Equal(t, afterCore("orders 00001_a.sql"), names(done))

	dsn := emptyDSN(t)
	r := newRole(t, dsn)
	execSQL(t, dsn, `alter role "`+r.name+`" superuser`) // or its mark would be refused
	for n, set := range []string{"set role", "set session authorization"} {
		s := orders("1_a", set+` "`+r.name+"\";\n", "2_b", fmt.Sprintf("create table orders.b%d (id int);\n", n))
		s.Name = fmt.Sprintf("orders-%d", n)
		up(t, dsn, s)
		require.True(t, query[bool](t, dsn, `select relowner = current_user::regrole from pg_class where oid = $1::regclass`, fmt.Sprintf("orders.b%d", n)), set)
	}
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
