package intlock_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/intlock"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var execModes = pgtest.ExecModes()

// through is the way from a test to its database: none, or a pooler in the end-to-end tests.
var through = func(_ *testing.T, dsn string) string { return dsn }

// The layouts that Spring Integration ships for PostgreSQL.
const (
	layout70 = `
create table INT_LOCK (
	LOCK_KEY CHAR(36) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	CLIENT_ID CHAR(36),
	CREATED_DATE TIMESTAMP NOT NULL,
	EXPIRED_AFTER TIMESTAMP NOT NULL,
	constraint INT_LOCK_PK primary key (LOCK_KEY, REGION)
)`
	layout65 = `
create table INT_LOCK (
	LOCK_KEY CHAR(36) NOT NULL,
	REGION VARCHAR(100) NOT NULL,
	CLIENT_ID CHAR(36),
	CREATED_DATE TIMESTAMP NOT NULL,
	constraint INT_LOCK_PK primary key (LOCK_KEY, REGION)
)`
)

// database returns the address of one in which public has what ddl makes.
func database(t *testing.T, ddl string) string {
	t.Helper()
	dsn := pgtest.DSN(t)
	refill(t, dsn, ddl)
	return dsn
}

// refill makes public anew, for less than a database costs.
func refill(t *testing.T, dsn, ddl string) {
	t.Helper()
	conn := pgtest.Connect(t, dsn)
	_, err := conn.Exec(t.Context(), "drop schema public cascade; create schema public; set search_path = public; "+ddl)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

func open(t *testing.T, cfg postgres.Config) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), cfg, &postgres.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		require.NoError(t, db.Close(ctx))
	})
	return db
}

func locksOf(t *testing.T, db *postgres.DB, table string) *intlock.Locks {
	t.Helper()
	l, err := intlock.New(db, &intlock.Options{Table: table})
	require.NoError(t, err)
	return l
}

// node is one of this package on the table of dsn.
type node struct {
	db *postgres.DB
	*intlock.Locks
}

func newNode(t *testing.T, dsn, mode string) node {
	t.Helper()
	db := open(t, postgres.Config{DSN: through(t, dsn), ExecMode: cmp.Or(mode, execModes[0]), MaxConns: 2})
	return node{db, locksOf(t, db, "")}
}

// expire makes the lease on k pass now.
func (n node) expire(ctx context.Context, k lock.Key) error {
	region, key, err := intlock.RowOf(k)
	if err == nil {
		_, err = n.db.Exec(ctx, `update public.int_lock set expired_after = clock_timestamp() at time zone 'UTC' where region = $1 and lock_key = $2::bpchar`, region, key)
	}
	return err
}

func (n node) exec(t *testing.T, sql string) {
	t.Helper()
	_, err := n.db.Exec(t.Context(), sql)
	require.NoError(t, err)
}

func get[T any](t *testing.T, n node, sql string, args ...any) (v T) {
	t.Helper()
	require.NoError(t, n.db.QueryRow(t.Context(), sql, args...).Scan(&v))
	return v
}

// queued waits until a session waits for a row.
func (n node) queued(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return get[bool](t, n, `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`)
	}, 30*time.Second, time.Millisecond)
}

func (n node) acquires(t *testing.T, k lock.Key, lease time.Duration) lock.Token {
	t.Helper()
	token := newToken()
	h, err := n.Acquire(t.Context(), k, token, lease, false)
	require.NoError(t, err)
	require.Equal(t, lock.Holder{}, h)
	return token
}

func (n node) refused(t *testing.T, k lock.Key) lock.Holder {
	t.Helper()
	h, err := n.Acquire(t.Context(), k, newToken(), time.Minute, true)
	require.NoError(t, err)
	require.True(t, h.Held)
	looked, err := n.Look(t.Context(), k)
	require.NoError(t, err)
	require.True(t, looked.Held)
	return looked
}

func (n node) releases(t *testing.T, k lock.Key, token lock.Token, want lock.Freed) {
	t.Helper()
	freed, err := n.Release(t.Context(), k, token)
	require.NoError(t, err)
	require.Equal(t, want, freed)
}

func newToken() (t lock.Token) {
	_, _ = rand.Read(t[:]) // it never fails
	return t
}

func key(name string) lock.Key { return lock.Key{Region: "DEFAULT", Name: name} }

// quiet fails unless no statement failed in the database, once all of its sessions but the asking one have ended.
func quiet(t *testing.T, dsn string) {
	t.Helper()
	conn := pgtest.Connect(t, dsn)
	require.Eventually(t, func() bool {
		var alone bool
		err := conn.QueryRow(t.Context(), `select not exists (select from pg_stat_activity
			where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend')`).Scan(&alone)
		return err == nil && alone
	}, 30*time.Second, time.Millisecond)
	var failed int
	require.NoError(t, conn.QueryRow(t.Context(), `select xact_rollback from pg_stat_database where datname = current_database()`).Scan(&failed))
	require.Zero(t, failed, "statements that failed, and whose errors are in the server's log")
}

func replace(s string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(s) }
