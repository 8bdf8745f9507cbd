package migrations

import (
	"crypto/rand"
	"net/url"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
)

func TestDriftIsRefused(t *testing.T) {
	t.Parallel()
	base := orders("1_order", createOrders, "3_c", "create table orders.c (id int);\n")
	without := func(name string) Stream {
		s := with(base)
		dir, _ := s.FS.(fstest.MapFS)
		delete(dir, name)
		return s
	}
	for _, c := range []struct {
		name   string
		damage string
		stream Stream
		want   error
		text   string
	}{
		{"changed file", "", with(base, "1_order", "create table orders.order_line (id int);\n"), ErrChanged, "stream orders: version 1 (00001_order.sql)"},
		{"no checksum on record", `delete from caskeleton.migration_checksum where version = 3 and stream = 'orders'`, base, ErrChanged, "version 3 (00003_c.sql)"},
		{"lower version", "", with(base, "2_b", "create table orders.b (id int);\n"), ErrLate, "version 2 (00002_b.sql)"},
		{"file removed", "", without("00001_order.sql"), ErrMissing, "version 1 (00001_order.sql)"},
		{"history emptied", `truncate caskeleton.migrations_orders`, base, ErrHistoryLost, "version 1 (00001_order.sql)"},
		{"mark of an undone version", `update caskeleton.migrations_orders set is_applied = false where version_id = 1`, base, ErrHistoryLost, "version 1 (00001_order.sql)"},
		{
			"history of a newer binary lost", `insert into caskeleton.migration_checksum (stream, version, file, checksum) values ('orders', 9, '00009_i.sql', repeat('0', 64))`, base,
			ErrHistoryLost, "version 9 (00009_i.sql)",
		},
		{"history dropped", `drop table caskeleton.migrations_orders`, base, ErrHistoryLost, "version 1 (00001_order.sql)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dsn := emptyDSN(t)
			up(t, dsn, base)
			if c.damage != "" {
				execSQL(t, dsn, c.damage)
			}
			m := migrator(t, dsn, nil, c.stream)
			done, err := m.Up(t.Context())
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
			require.Empty(t, done)
			require.False(t, query[bool](t, dsn, `select to_regclass('orders.b') is not null`))
			err = m.Verify(t.Context())
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
		})
	}
}

func TestLineEndsAreNotAChange(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, orders("1_order", "create table orders.a (id int);\ncreate table orders.b (id int);\n"))
	crlf := Stream{Name: "orders", Schema: "orders", FS: fstest.MapFS{
		"00001_order.sql": {Data: []byte("-- +goose Up\r\ncreate table orders.a (id int);\r\ncreate table orders.b (id int);\r\n")},
	}}
	require.NoError(t, migrator(t, dsn, nil, crlf).Verify(t.Context()))
}

func TestADatabaseThatIsAhead(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	old := orders("1_order", createOrders)
	up(t, dsn, with(old, "2_b", "create table orders.b (id int);\n"))

	var log logBuffer
	m := migrator(t, dsn, &Options{Logger: log.logger()}, old)
	require.NoError(t, m.Verify(t.Context()))
	said := log.String()
	require.Contains(t, said, `msg="database is ahead of this binary" stream=orders have=2 want=1`)
	require.NoError(t, m.Verify(t.Context()))
	require.Equal(t, said, log.String(), "a probe does not repeat it")
	done, err := m.Up(t.Context())
	require.NoError(t, err)
	require.Empty(t, done)

	strict := migrator(t, dsn, &Options{Ahead: AheadRefuse}, old)
	require.ErrorIs(t, strict.Verify(t.Context()), ErrAhead)
	_, err = strict.Up(t.Context())
	require.ErrorIs(t, err, ErrAhead)
}

func TestADatabaseThatIsBehind(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	s := orders("1_order", createOrders)
	require.ErrorIs(t, migrator(t, dsn, nil, s).Verify(t.Context()), ErrBehind)
	require.Equal(t, 0, query[int](t, dsn, `select count(*) from pg_namespace where nspname = 'caskeleton'`), "Verify creates nothing")
	up(t, dsn, s)
	s = with(s, "2_b", "create table orders.b (id int);\n", "3_c", "create table orders.c (id int);\n")
	err := migrator(t, dsn, nil, s).Verify(t.Context())
	require.ErrorIs(t, err, ErrBehind)
	require.ErrorContains(t, err, "stream orders")
	require.ErrorContains(t, err, "it has version 1 and 3 is needed (2 pending)")
}

func TestStatus(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	s := orders("1_order", createOrders, "4_d", "create table orders.d (id int);\n")
	up(t, dsn, s)
	changed := with(s, "1_order", "select 1;\n", "2_b", "select 1;\n", "5_e", "select 1;\n")
	got, err := migrator(t, dsn, nil, changed, Idempotency()).Status(t.Context())
	require.NoError(t, err)
	want := []Status{
		{Stream: "core", Have: 4, Want: 4, Files: []FileStatus{
			{Version: 1, File: "00001_migration_checksum.sql", State: StateApplied},
			{Version: 2, File: "00002_commit_witness.sql", State: StateApplied},
			{Version: 3, File: "00003_audit.sql", State: StateApplied},
			{Version: 4, File: "00004_operator_action.sql", State: StateApplied},
		}},
		{Stream: "orders", Have: 4, Want: 5, Files: []FileStatus{
			{Version: 1, File: "00001_order.sql", State: StateChanged},
			{Version: 2, File: "00002_b.sql", State: StateLate},
			{Version: 4, File: "00004_d.sql", State: StateApplied},
			{Version: 5, File: "00005_e.sql", State: StatePending},
		}},
		{Stream: "idempotency", Want: 3, Files: []FileStatus{
			{Version: 1, File: "00001_idempotency_record.sql", State: StatePending},
			{Version: 2, File: "00002_idempotency_key.sql", State: StatePending},
			{Version: 3, File: "00003_external_effects.sql", State: StatePending},
		}},
	}
	require.Empty(t, cmp.Diff(want, got, cmpopts.IgnoreFields(FileStatus{}, "AppliedAt")))
	require.False(t, got[0].Files[0].AppliedAt.IsZero())
	require.True(t, got[2].Files[0].AppliedAt.IsZero())
}

type role struct{ name, dsn string }

// newRole returns a role that may log in and nothing else.
func newRole(t *testing.T, dsn string) role {
	t.Helper()
	name := "r_" + rand.Text()
	execSQL(t, dsn, `create role "`+name+`" login password 'secret'`)
	t.Cleanup(func() { execSQL(t, dsn, `drop owned by "`+name+`"; drop role "`+name+`"`) })
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	u.User = url.UserPassword(name, "secret")
	return role{name, u.String()}
}

func TestARoleWithoutDDLCanAsk(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	r := newRole(t, dsn)
	m := migrator(t, r.dsn, nil, Idempotency())
	require.ErrorIs(t, m.Verify(t.Context()), ErrBehind, "before there is a schema")
	up(t, dsn, Idempotency())
	require.ErrorContains(t, m.Verify(t.Context()), "grant it USAGE on the schema and SELECT on the table")

	execSQL(t, dsn, `grant usage on schema caskeleton to "`+r.name+`"; grant select on all tables in schema caskeleton to "`+r.name+`"`)
	require.NoError(t, m.Verify(t.Context()))
	all, err := m.Status(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	_, err = migrator(t, r.dsn, nil, orders("1_order", createOrders)).Up(t.Context())
	require.ErrorContains(t, err, "SQLSTATE 42501")
}
