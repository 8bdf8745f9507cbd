package pglock_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pglock"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/lock"
)

var execModes = pgtest.ExecModes()

// through is the way from a test to its database: none, or a pooler in the end-to-end tests.
var through = func(_ *testing.T, dsn string) string { return dsn }

// node is one instance of a service: a pool, and the locks in its database.
type node struct {
	dsn   string // past a pooler
	db    *postgres.DB
	locks *pglock.Locks
}

func newNode(t *testing.T, cfg postgres.Config) *node {
	t.Helper()
	if cfg.DSN == "" {
		cfg.DSN = migrationstest.DSN(t, migrations.Lock())
	}
	direct, listen := cfg.DSN, ""
	cfg.DSN, cfg.ExecMode = through(t, direct), cmp.Or(cfg.ExecMode, execModes[0])
	if cfg.DSN != direct {
		listen = direct
	}
	db, err := postgres.Open(t.Context(), cfg, &postgres.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		require.NoError(t, db.Close(ctx), "a connection was not given back")
	})
	locks, err := pglock.New(db, &pglock.Options{ListenDSN: listen})
	require.NoError(t, err)
	return &node{direct, db, locks}
}

// strict are the modes in which the default isolation of the database is the strictest.
var strict = []string{"cache_describe", "simple_protocol"}

func defaultIsolation(mode string) string {
	if slices.Contains(strict, mode) {
		return "serializable"
	}
	return "read committed"
}

// TestInEachMode gives each mode one database, which its tests have one after the other.
func TestInEachMode(t *testing.T) {
	tests := map[string]func(t *testing.T, n *node){
		"a held row is not touched":                 testAHeldRowIsNotTouched,
		"only a contended release is heard":         testOnlyAContendedReleaseIsHeard,
		"a key is held by one":                      testAKeyIsHeldByOne,
		"an expired lease holds nothing":            testAnExpiredLeaseHoldsNothing,
		"a repeated acquire takes anew":             testARepeatedAcquireTakesAnew,
		"the clock is read after the row is locked": testTheClockIsReadAfterTheRowIsLocked,
		"one takes an expired row":                  testOneTakesAnExpiredRow,
		"reap":                                      testReap,
		"the longest lease":                         testTheLongestLease,
		"what is broken is an error":                testWhatIsBrokenIsAnError,
	}
	for _, mode := range execModes {
		isolation := defaultIsolation(mode)
		t.Run(mode+"/"+isolation, func(t *testing.T) {
			t.Parallel()
			dsn := migrationstest.DSN(t, migrations.Lock())
			isolate(t, dsn, isolation)
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					n := newNode(t, postgres.Config{DSN: dsn, ExecMode: mode})
					n.exec(t, `truncate caskeleton.lock_lease`)
					test(t, n)
				})
			}
		})
	}
}

// isolate makes isolation the default of sessions to come.
func isolate(t *testing.T, dsn, isolation string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	_, err = conn.Exec(t.Context(), `alter database `+pgx.Identifier{conn.Config().Database}.Sanitize()+` set default_transaction_isolation = '`+isolation+`'`)
	require.NoError(t, err)
}

func newToken() (t lock.Token) {
	_, _ = rand.Read(t[:]) // it never fails
	return t
}

func key(name string) lock.Key { return lock.Key{Region: "r", Name: name} }

// acquire tries once.
func (n *node) acquire(t *testing.T, name string, token lock.Token, lease time.Duration, waiting bool) lock.Holder {
	t.Helper()
	h, err := n.locks.Acquire(t.Context(), key(name), token, lease, waiting)
	require.NoError(t, err)
	return h
}

// take expects to get the key.
func (n *node) take(t *testing.T, name string) lock.Token {
	t.Helper()
	token := newToken()
	require.Zero(t, n.acquire(t, name, token, time.Hour, false))
	return token
}

func (n *node) look(t *testing.T, name string) lock.Holder {
	t.Helper()
	h, err := n.locks.Look(t.Context(), key(name))
	require.NoError(t, err)
	return h
}

func (n *node) release(t *testing.T, name string, token lock.Token) lock.Freed {
	t.Helper()
	f, err := n.locks.Release(t.Context(), key(name), token)
	require.NoError(t, err)
	return f
}

const expireSQL = `update caskeleton.lock_lease set expires_at = clock_timestamp() where digest = $1 and expires_at > clock_timestamp()`

// expire ends the lease of whoever has the key.
func (n *node) expire(t *testing.T, name string) {
	t.Helper()
	digest := key(name).Digest()
	n.exec(t, expireSQL, digest[:])
}

func (n *node) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := n.db.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func get[T any](t *testing.T, n *node, sql string, args ...any) (v T) {
	t.Helper()
	require.NoError(t, n.db.QueryRow(t.Context(), sql, args...).Scan(&v))
	return v
}

// hold keeps the row of a key, locked by a statement, until end is called with commit or rollback.
func (n *node) hold(t *testing.T, name, sql string) (end func(how string)) {
	t.Helper()
	conn := n.session(t)
	digest := key(name).Digest()
	_, err := conn.Exec(t.Context(), `begin isolation level read committed`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), sql, digest[:])
	require.NoError(t, err)
	return func(how string) {
		_, err := conn.Exec(t.Context(), how)
		require.NoError(t, err)
	}
}

// What hold locks a row by.
const (
	lockRow  = `select from caskeleton.lock_lease where digest = $1 for update`
	touchRow = `update caskeleton.lock_lease set contended = contended where digest = $1`
)

// session is one outside of the pool, until the test ends.
func (n *node) session(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := n.db.Dedicated(t.Context(), n.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// queued waits until a session waits for a row.
func (n *node) queued(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return get[int](t, n, `select count(*)::int4 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == 1
	}, 30*time.Second, time.Millisecond)
}

// async returns what will be the answer of a call.
func async[T any](t *testing.T, call func() (T, error)) <-chan T {
	t.Helper()
	answer := make(chan T, 1)
	go func() {
		v, err := call()
		if err != nil {
			t.Error(err)
		}
		answer <- v
	}()
	return answer
}
