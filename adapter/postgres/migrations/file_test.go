package migrations

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

const anyDSN = "postgres://localhost/x"

func TestNewRefusesFiles(t *testing.T) {
	t.Parallel()
	const upLine = "-- +goose Up\n"
	for _, c := range []struct{ name, file, body, want string }{
		{"name", "1_order.sql", upLine + "select 1;", "five digits"},
		{"name without a word", "00001.sql", upLine + "select 1;", "five digits"},
		{"upper case", "00001_Order.sql", upLine + "select 1;", "five digits"},
		{"Go file", "00001_order.go", "package x", "five digits"},
		{"version zero", "00000_order.sql", upLine + "select 1;", "begin at 00001"},
		{"no Up", "00001_a.sql", "select 1;", "no \"-- +goose Up\" line"},
		{"Down", "00001_a.sql", upLine + "select 1;\n-- +goose Down\nselect 2;", "only go forward"},
		{"environment", "00001_a.sql", upLine + "-- +goose ENVSUB ON\nselect 1;", "ENVSUB ON"},
		{"empty", "00001_a.sql", upLine + "-- nothing; here\n", "holds no statement"},
		{"concurrently in a transaction", "00001_a.sql", upLine + "select 1;\nCREATE  INDEX\nCONCURRENTLY x on a.b (c);", "statement 2 is CONCURRENTLY"},
		{"commit", "00001_a.sql", upLine + "select 1; commit; select 2;", "statement 2 controls the transaction"},
		{"commit by its other name", "00001_a.sql", upLine + "select 1; END; select 2;", "statement 2 controls the transaction"},
		{"and chain", "00001_a.sql", upLine + "select 1; end work and no chain;", "statement 2 controls the transaction"},
		{"end after a function", "00001_a.sql", upLine + atomicFunction + "end;\nselect 1;", "statement 4 controls the transaction"},
		{"two statements", "00001_a.sql", upLine + "-- +goose NO TRANSACTION\nvacuum a.b;\nvacuum a.c;", "holds 2 statements"},
		{"two statements in one line", "00001_a.sql", "-- +goose NO TRANSACTION\n" + upLine + "vacuum a.b; vacuum a.c", "holds 2 statements"},
		{"two statements in one block", "00001_a.sql", "-- +goose NO TRANSACTION\n" + upLine + "-- +goose StatementBegin\nvacuum a.b;vacuum a.c;\n-- +goose StatementEnd\n", "form a transaction"},
		{"index that exists", "00001_a.sql", "-- +goose NO TRANSACTION\n" + upLine + "create index concurrently x on a.b (c);", "IF NOT EXISTS"},
		{"index that could not be found again", "00001_a.sql", "-- +goose NO TRANSACTION\n" + upLine + "create index concurrently if not exists \"x-y\" on a.b (c);", "lower case and unquoted"},
		{"index that is gone", "00001_a.sql", "-- +goose NO TRANSACTION\n" + upLine + "drop index concurrently a.x;", "IF EXISTS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := Stream{Name: "orders", Schema: "orders", FS: fstest.MapFS{c.file: {Data: []byte(c.body)}}}
			_, err := New(anyDSN, []Stream{s}, nil)
			require.ErrorContains(t, err, "migrations: stream orders: "+c.file)
			require.ErrorContains(t, err, c.want)
		})
	}
}

const atomicFunction = "-- +goose StatementBegin\ncreate function orders.two() returns int language sql begin atomic select 1; select 2; end;\n-- +goose StatementEnd\n"

func TestTheEndOfAFunctionIsNoCommit(t *testing.T) {
	t.Parallel()
	require.Equal(t, afterCore("orders 00001_two.sql"), up(t, emptyDSN(t), orders("1_two", atomicFunction)))
}

func TestNewRefusesStreams(t *testing.T) {
	t.Parallel()
	ok := orders("1_a", "select 1;")
	change := func(fn func(*Stream)) Stream { s := ok; fn(&s); return s }
	for _, c := range []struct {
		name    string
		streams []Stream
		want    string
	}{
		{"no name", []Stream{change(func(s *Stream) { s.Name = "" })}, `stream name ""`},
		{"name that needs quoting", []Stream{change(func(s *Stream) { s.Name = "Orders" })}, "lower-case words"},
		{"long name", []Stream{change(func(s *Stream) { s.Name = "a12345678901234567890123456789012345678901" })}, "at most 40"},
		{"no schema", []Stream{change(func(s *Stream) { s.Schema = "" })}, `schema ""`},
		{"PostgreSQL's schema", []Stream{change(func(s *Stream) { s.Schema = "pg_orders" })}, `"pg_orders"`},
		{"schema with SQL", []Stream{change(func(s *Stream) { s.Schema = "a; drop schema b" })}, "PostgreSQL name"},
		{"no files", []Stream{change(func(s *Stream) { s.FS = fstest.MapFS{"readme.md": {}} })}, "has no files"},
		{"nil FS", []Stream{change(func(s *Stream) { s.FS = nil })}, "FS is nil"},
		{"the kit's name", []Stream{change(func(s *Stream) { s.Name = "core" })}, "one of the kit's"},
		{"the kit's schema", []Stream{change(func(s *Stream) { s.Schema = "caskeleton" })}, "belongs to the kit"},
		{"twice", []Stream{ok, ok}, "given twice"},
		{"core twice", []Stream{Core(), Core()}, "stream core is given twice"},
		{"same version", []Stream{with(ok, "1_b", "select 1;")}, "00001_a.sql and 00001_b.sql have the same version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := New(anyDSN, c.streams, nil)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestNewRefusesOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{LockTimeout: -1}, {TableLockTimeout: -1}, {TableLockTimeout: time.Microsecond}, {Ahead: 2}} {
		_, err := New(anyDSN, nil, &o)
		require.Error(t, err)
	}
}

func TestTheKitsStreams(t *testing.T) {
	t.Parallel()
	m, err := New(anyDSN, All(), nil)
	require.NoError(t, err)
	var names []string
	for _, s := range m.streams {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"core", "idempotency", "outbox-storage", "outbox-polling", "inbox", "lock"}, names)
	require.Equal(t, "caskeleton.migrations_idempotency", m.streams[1].table())
	require.Equal(t, "caskeleton.migrations_outbox_storage", Stream{Name: "outbox-storage"}.table())
}

func TestSplitStatements(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"":                                   nil,
		" ; ;\n-- a; b\n/* c; /* d; */ e;*/": nil,
		"SELECT 1;select\n  2":               {"select 1", "select 2"},
		"select ';', e'\\';', 'it''s;'":      {"select '', '', ''''"},
		`select 1 as "a;b"`:                  {`select 1 as "a;b"`},
		"do $$ begin; end $$; select 1":      {"do ''", "select 1"},
		"do $a$ $$;$$ $b$;$b$ $a$":           {"do ''"},
		"select a$b$, c$b$; select $1":       {"select a$b$, c$b$", "select $1"},
		"select name'x;y'":                   {"select name''"},
		"select 'open; and on":               {"select ''"},
	} {
		require.Equal(t, want, splitStatements(in), in)
	}
}
