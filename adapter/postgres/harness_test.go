package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/tx"
)

const schema = `
create schema shop;
create table shop.parents (id int8 primary key);
create table shop.items (
	id int8 primary key,
	parent_id int8 references shop.parents (id),
	name varchar(10) not null,
	qty int8 not null default 1 constraint items_qty_check check (qty > 0),
	slot int8range,
	code text constraint items_code_key unique deferrable initially deferred,
	constraint items_slot_excl exclude using gist (slot with &&)
);
create table shop.parted (d int8 not null) partition by range (d);
create table shop.parted_low partition of shop.parted for values from (0) to (10);
create view shop.big_parents as select id from shop.parents where id > 100 with check option;
insert into shop.parents values (1), (2);
insert into shop.items (id, parent_id, name, slot, code) values (1, 1, 'one', '[1,5)', 'A'), (2, 1, 'two', '[5,9)', 'B');`

var execModes = pgtest.ExecModes()

// through is the way from a test to its database: none, or a pooler in the end-to-end tests.
var through = func(_ *testing.T, dsn string) string { return dsn }

// shop opens a pool on a fresh database with the schema in it.
func shop(t *testing.T, cfg postgres.Config) *postgres.DB {
	t.Helper()
	if cfg.DSN == "" {
		cfg.DSN = through(t, pgtest.DSN(t))
	}
	db := open(t, cfg)
	_, err := db.Exec(t.Context(), schema)
	require.NoError(t, err)
	return db
}

func open(t *testing.T, cfg postgres.Config) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), cfg, &postgres.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	closeAtEnd(t, db)
	return db
}

func closeAtEnd(t *testing.T, db *postgres.DB) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		require.NoError(t, db.Close(ctx), "a connection was not given back")
	})
}

// transaction is what a test needs of one: the driver's connection and the handle for SQL.
type transaction struct {
	tx.Conn
	postgres.DBTX
}

func begin(t *testing.T, db *postgres.DB, o tx.BeginOptions) transaction {
	t.Helper()
	c, err := db.Begin(t.Context(), o)
	require.NoError(t, err)
	q, err := postgres.QuerierOf(c)
	require.NoError(t, err)
	return transaction{c, q}
}

// inTx runs fn in a transaction that is rolled back, and returns fn's error.
func inTx(t *testing.T, db *postgres.DB, o tx.Options, fn func(q transaction) error) error {
	t.Helper()
	c := begin(t, db, tx.BeginOptions{Options: o})
	defer func() { require.NoError(t, c.Rollback(context.WithoutCancel(t.Context()))) }()
	return fn(c)
}

func exec(t *testing.T, q postgres.DBTX, sql string, args ...any) {
	t.Helper()
	_, err := q.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func get[T any](t *testing.T, q postgres.DBTX, sql string, args ...any) (v T) {
	t.Helper()
	require.NoError(t, q.QueryRow(t.Context(), sql, args...).Scan(&v))
	return v
}

func backend(t *testing.T, q postgres.DBTX) int64 {
	t.Helper()
	return get[int64](t, q, "select pg_backend_pid()::int8")
}

// waitGone waits until the server has no such session any more.
func waitGone(t *testing.T, db *postgres.DB, pid int64) {
	t.Helper()
	eventually(t, db, "select not exists (select from pg_stat_activity where pid = $1::int8)", pid)
}

func eventually(t *testing.T, db *postgres.DB, sql string, args ...any) {
	t.Helper()
	require.Eventually(t, func() bool {
		var ok bool
		return db.QueryRow(t.Context(), sql, args...).Scan(&ok) == nil && ok
	}, 20*time.Second, 10*time.Millisecond, sql)
}

func sqlstate(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

func with(t *testing.T, dsn string, change func(u *url.URL)) string {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	change(u)
	return u.String()
}

// sameDatabase is cfg for the database and exec mode of db.
func sameDatabase(db *postgres.DB, cfg postgres.Config) postgres.Config {
	cfg.DSN = db.Config().DSN
	if cfg.ExecMode == "" {
		cfg.ExecMode = db.Config().ExecMode
	}
	return cfg
}
