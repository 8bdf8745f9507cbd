package migrations

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// granted is a database with the kit's streams and a service's, migrated by an owner who is no superuser, and a runtime role.
func granted(t *testing.T, o Roles) (admin, owner, runtime string) {
	t.Helper()
	admin = emptyDSN(t)
	own, run := newRole(t, admin), newRole(t, admin)
	execSQL(t, admin, `create schema elsewhere; create table elsewhere.t (id int); create table public.t (id int)`)
	o.Runtime, o.Owner = run.name, own.name
	_, err := migrator(t, admin, nil, everything()...).Grant(t.Context(), o) // before the first migration: the owner gets its right to create
	require.NoError(t, err)
	up(t, own.dsn, everything()...)
	_, err = migrator(t, admin, nil, everything()...).Grant(t.Context(), o)
	require.NoError(t, err)
	return admin, own.dsn, run.dsn
}

func state(err error) string {
	pgErr, _ := err.(*pgconn.PgError) //nolint:errorlint // as Exec returns it
	if pgErr == nil {
		return fmt.Sprint(err)
	}
	return pgErr.Code
}

func TestWhatTheRuntimeRoleMayNot(t *testing.T) {
	t.Parallel()
	admin, _, runtime := granted(t, Roles{})
	execSQL(t, admin, `create sequence elsewhere.s`)
	conn := connect(t, runtime)
	for _, sql := range []string{
		`create table caskeleton.x (id int)`, `create table orders.x (id int)`, `create table public.x (id int)`, `create temporary table x (id int)`,
		`create schema x`, `create function caskeleton.f() returns int language sql as 'select 1'`, `create index on caskeleton.outbox_lane (hold)`,
		`alter table caskeleton.outbox_event add x int`, `alter table orders.order_line add x int`, `drop table caskeleton.inbox_message`, `drop schema caskeleton cascade`,
		`truncate caskeleton.outbox_lane`, `truncate orders.order_line`, `lock table caskeleton.outbox_event in access exclusive mode; select 1`,
		`select * from elsewhere.t`, `insert into elsewhere.t values (1)`, `select nextval('elsewhere.s')`, `select * from public.t`,
		`insert into caskeleton.migrations_core (version_id, is_applied) values (9, true)`, `delete from caskeleton.migrations_core`, `update caskeleton.migrations_orders set version_id = 9`,
		`insert into caskeleton.migration_checksum (stream, version, file, checksum) values ('core', 9, '', '')`, `delete from caskeleton.migration_checksum`,
		`update caskeleton.outbox_event set type = ''`, `delete from caskeleton.outbox_event`, `delete from caskeleton.outbox_counter`, `delete from caskeleton.outbox_identity`, `update caskeleton.commit_witness set id = id`,
		`update caskeleton.operator_action set reason = ''`, `delete from caskeleton.operator_action`, `truncate caskeleton.operator_action`,
		`insert into caskeleton.operator_action (acted_at, operator, verb, kind, subject, reason, changed) values (now(), 'o', 'v', 'k', 's', 'r', 1)`,
		`update caskeleton.outbox_control set mode = 'paused'`, `update caskeleton.outbox_control set epoch = 2`, `delete from caskeleton.outbox_control`,
		`insert into caskeleton.outbox_control default values`, `update caskeleton.idempotency_key set version = ''`, `delete from caskeleton.inbox_message`,
		`set session authorization postgres`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		require.Equal(t, "42501", state(err), sql)
	}
	// Its partitions are reached through their table alone.
	var partition string
	require.NoError(t, conn.QueryRow(t.Context(), `select inhrelid::regclass::text from pg_inherits where inhparent = 'caskeleton.outbox_event'::regclass limit 1`).Scan(&partition))
	_, err := conn.Exec(t.Context(), `select * from `+partition)
	require.Equal(t, "42501", state(err))
}

func TestWhatTheRuntimeRoleMay(t *testing.T) {
	t.Parallel()
	_, owner, runtime := granted(t, Roles{})
	require.NoError(t, migrator(t, runtime, nil, everything()...).Verify(t.Context()), "readiness is a plain SELECT")
	conn := connect(t, runtime)
	for _, sql := range []string{
		`insert into orders.order_line values (1, 'a')`, `update orders.order_line set sku = 'b'`, `select * from orders.order_line`, `delete from orders.order_line`,
		`select singleton from caskeleton.outbox_control where singleton for share`,
		`insert into caskeleton.commit_witness (id) values (gen_random_uuid()) on conflict (id) do nothing`,
		`delete from caskeleton.commit_witness where id in (select id from caskeleton.commit_witness order by written_at limit 1)`,
		`insert into caskeleton.outbox_identity (id, recorded_at) values (gen_random_uuid(), now()) on conflict (id) do nothing`, `select recorded_at from caskeleton.outbox_identity`,
		`insert into caskeleton.operator_action (operator, verb, kind, subject, reason, changed) values ('o', 'v', 'k', 's', 'r', 1)`, `select act, acted_at from caskeleton.operator_action`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	// Of the service's own schema also what a later migration makes.
	more := append(All(), orders("1_order", createOrders, "2_index", createIndexFile, "3_c", "create table orders.c (id int);\n", "4_d", "create table orders.d (id bigserial);\n"))
	up(t, owner, more...)
	_, err := conn.Exec(t.Context(), `insert into orders.d default values`)
	require.NoError(t, err)
}

func TestGrantsPinTheSettingsOfTheRole(t *testing.T) {
	t.Parallel()
	_, _, runtime := granted(t, Roles{StatementTimeout: 7 * time.Second, IdleTxTimeout: 1500 * time.Millisecond})
	conn := connect(t, runtime) // with no start-up parameter of its own, as behind a pooler
	for name, want := range map[string]string{"search_path": "", "TimeZone": "UTC", "default_transaction_isolation": "read committed", "statement_timeout": "7s", "lock_timeout": "3s", "idle_in_transaction_session_timeout": "1500ms"} {
		var got string
		require.NoError(t, conn.QueryRow(t.Context(), `select current_setting($1)`, name).Scan(&got))
		require.Equal(t, want, got, name)
	}
	_, err := conn.Exec(t.Context(), `select * from order_line`)
	require.Equal(t, "42P01", state(err))
}

func TestGrantsTakeBackWhatIsNotGranted(t *testing.T) {
	t.Parallel()
	admin := emptyDSN(t)
	r := newRole(t, admin)
	streams := everything()
	up(t, admin, streams...)
	execSQL(t, admin, `grant all on schema caskeleton, public to "`+r.name+`"; grant all on all tables in schema caskeleton to "`+r.name+`"; grant update (mode) on caskeleton.outbox_control to public`)
	execSQL(t, admin, `do $$ begin execute format('grant create, temporary on database %I to "`+r.name+`"', current_database()); end $$`)
	execSQL(t, admin, `grant create on schema public to public; grant all on schema orders to "`+r.name+`", public; grant all on orders.order_line to "`+r.name+`", public`)
	m := migrator(t, admin, nil, streams...)
	stated, err := m.Grants(t.Context(), Roles{Runtime: r.name})
	require.NoError(t, err)
	_, err = connect(t, r.dsn).Exec(t.Context(), `create table caskeleton.x ()`)
	require.NoError(t, err, "Grants only tells")
	done, err := m.Grant(t.Context(), Roles{Runtime: r.name})
	require.NoError(t, err)
	require.Equal(t, stated, done)
	for _, sql := range []string{`create schema y`, `create temporary table y ()`, `create table caskeleton.y ()`, `create table public.y ()`, `create table orders.y ()`, `truncate orders.order_line`, `truncate caskeleton.outbox_lane`, `update caskeleton.outbox_control set mode = 'paused'`} {
		_, err = connect(t, r.dsn).Exec(t.Context(), sql)
		require.Equal(t, "42501", state(err), sql)
	}
	again, err := m.Grant(t.Context(), Roles{Runtime: r.name})
	require.NoError(t, err)
	require.Equal(t, done, again)
}

// A binary that does not know the service's streams leaves the service its right to read the histories that readiness asks for.
func TestGrantsLeaveTheHistoriesOfOtherStreamsReadable(t *testing.T) {
	t.Parallel()
	admin := emptyDSN(t)
	r := newRole(t, admin)
	up(t, admin, everything()...)
	for _, streams := range [][]Stream{everything(), All()} {
		_, err := migrator(t, admin, nil, streams...).Grant(t.Context(), Roles{Runtime: r.name})
		require.NoError(t, err)
	}
	runtime := connect(t, r.dsn)
	_, err := runtime.Exec(t.Context(), `select version_id from caskeleton.migrations_orders`)
	require.NoError(t, err)
	_, err = runtime.Exec(t.Context(), `delete from caskeleton.migrations_orders`)
	require.Equal(t, "42501", state(err))
}

// TestEachTableIsGranted, or said to need no grant: what tables.yaml does not know no role could use.
func TestEachTableIsGranted(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, All()...)
	rows, err := connect(t, dsn).Query(t.Context(), `select relname from pg_class where relnamespace = 'caskeleton'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`)
	require.NoError(t, err)
	have, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	var want []string
	for _, tb := range tables {
		want = append(want, tb.name)
	}
	for _, s := range All() {
		want = append(want, s.tableName())
	}
	slices.Sort(want)
	require.Equal(t, want, have)
	for _, tb := range tables { // each is in the stream that it is said to be in
		alone := emptyDSN(t)
		i := slices.IndexFunc(All(), func(s Stream) bool { return s.Name == tb.stream })
		up(t, alone, All()[i])
		require.True(t, query[bool](t, alone, `select to_regclass($1) is not null`, "caskeleton."+tb.name), tb.name)
	}
}

func TestGrantsRefuse(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	me := u.User.Username()
	r, member := newRole(t, dsn), newRole(t, dsn)
	execSQL(t, dsn, `grant "`+r.name+`" to "`+member.name+`"`)
	m := migrator(t, dsn, nil)
	for want, roles := range map[string]Roles{
		"there is no role":         {Runtime: "nobody_at_all"},
		"to own the schema":        {Runtime: r.name, Owner: "nobody_at_all"},
		"the name of a role":       {Runtime: `a"b`},
		"is the owner":             {Runtime: r.name, Owner: r.name},
		"is a superuser":           {Runtime: me, Owner: r.name},
		"is a member of the owner": {Runtime: member.name, Owner: r.name},
		"is negative":              {Runtime: r.name, LockTimeout: -1},
	} {
		_, err := m.Grant(t.Context(), roles)
		require.ErrorContains(t, err, want)
	}
	_, err = migrator(t, r.dsn, nil).Grant(t.Context(), Roles{Runtime: member.name, Owner: me})
	require.ErrorContains(t, err, "nothing was granted: ")
	require.ErrorContains(t, err, "42501")
}
