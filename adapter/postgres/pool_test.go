package postgres_test

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// full returns a pool whose only connection is taken until the test ends.
func full(t *testing.T, cfg postgres.Config) *postgres.DB {
	t.Helper()
	cfg.DSN, cfg.MaxConns = pgtest.DSN(t), 1
	db := open(t, cfg)
	c := begin(t, db, tx.BeginOptions{})
	t.Cleanup(func() { require.NoError(t, c.Rollback(context.WithoutCancel(t.Context()))) })
	return db
}

// verbs are all that need a connection.
func verbs(ctx context.Context, db *postgres.DB) map[string]error {
	_, exec := db.Exec(ctx, "select 1")
	rows, query := db.Query(ctx, "select 1")
	rows.Close()
	_, begin := db.Begin(ctx, tx.BeginOptions{})
	return map[string]error{
		"Exec": exec, "Query": query, "rows": rows.Err(), "QueryRow": db.QueryRow(ctx, "select 1").Scan(new(int)), "Ping": db.Ping(ctx), "Begin": begin,
	}
}

// patient is a pool whose own limits end no wait of a test.
var patient = postgres.Config{AcquireTimeout: time.Minute, StatementTimeout: 2 * time.Minute, IdleTxTimeout: 2 * time.Minute}

func TestPoolExhausted(t *testing.T) {
	for verb, err := range verbs(t.Context(), full(t, postgres.Config{AcquireTimeout: 500 * time.Millisecond})) {
		require.ErrorIs(t, err, fault.DBPoolExhausted, verb)
		require.True(t, fault.Retryable(err), verb)
		require.ErrorContains(t, err, "1 of 1 are in use", verb)
	}
}

func TestCallerEndsTheWait(t *testing.T) {
	db := full(t, patient)
	deadline, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for verb, err := range verbs(deadline, db) {
		require.ErrorIs(t, err, fault.DBStatementTimeout, verb)
		require.ErrorIs(t, err, context.DeadlineExceeded, verb)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for verb, err := range verbs(canceled, db) {
		require.Equal(t, context.Canceled, err, verb)
	}
}

func TestPoolClosed(t *testing.T) {
	db := open(t, postgres.Config{DSN: pgtest.DSN(t)})
	require.NoError(t, db.Close(t.Context()))
	for verb, err := range verbs(t.Context(), db) {
		require.ErrorIs(t, err, fault.DBPoolClosed, verb)
	}
	require.NoError(t, db.Close(t.Context()), "again")
}

// askedContext tells when somebody first wants to know of its end.
type askedContext struct {
	context.Context
	asked chan struct{}
	once  sync.Once
}

func (c *askedContext) Done() <-chan struct{} {
	c.once.Do(func() { close(c.asked) })
	return c.Context.Done()
}

func TestCloseEndsTheWaits(t *testing.T) {
	cfg := patient
	cfg.DSN, cfg.MaxConns = pgtest.DSN(t), 1
	db := open(t, cfg)
	c := begin(t, db, tx.BeginOptions{})
	waiting := make(chan error, 1)
	ctx := &askedContext{Context: t.Context(), asked: make(chan struct{})}
	go func() {
		_, err := db.Exec(ctx, "select 1")
		waiting <- err
	}()
	<-ctx.asked // it found the pool open, and is about to wait
	brief, ended := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer ended()
	_, err := db.Exec(brief, "select 1")
	require.ErrorIs(t, err, context.DeadlineExceeded, "behind it in the queue")

	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	err = db.Close(canceled)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "1 connections are still in use")
	select {
	case err := <-waiting:
		require.ErrorIs(t, err, fault.DBPoolClosed)
	case <-time.After(patient.AcquireTimeout / 2):
		require.Fail(t, "it waits on, until its own timeout")
	}

	exec(t, c, "select 1") // what was begun may end
	require.NoError(t, c.Commit(t.Context()))
	require.NoError(t, db.Close(t.Context()))
}

func TestSession(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := shop(t, postgres.Config{ExecMode: mode})
			for setting, want := range map[string]string{
				"search_path": "", "TimeZone": "UTC", "application_name": "caskeleton", "statement_timeout": "10s", "lock_timeout": "3s",
				"idle_in_transaction_session_timeout": "10s", "transaction_isolation": "read committed",
			} {
				require.Equal(t, want, get[string](t, db, "select current_setting($1)", setting), setting)
			}
			require.NoError(t, db.Ping(t.Context()))
		})
	}
	db := open(t, postgres.Config{
		DSN: with(t, pgtest.DSN(t), func(u *url.URL) {
			u.RawQuery = "application_name=other&statement_timeout=0&options=-c%20lock_timeout%3D0%20-c%20default_transaction_isolation%3Dserializable"
		}),
		StatementTimeout: 1500 * time.Millisecond, LockTimeout: time.Second, IdleTxTimeout: 2 * time.Second, ApplicationName: "orders",
	})
	for setting, want := range map[string]string{
		"application_name": "orders", "statement_timeout": "1500ms", "lock_timeout": "1s", "idle_in_transaction_session_timeout": "2s",
		"transaction_isolation": "read committed",
	} {
		require.Equal(t, want, get[string](t, db, "select current_setting($1)", setting), "Config wins over the DSN: "+setting)
	}
}

func TestSimpleProtocolNeedsItsSettings(t *testing.T) {
	for setting, value := range map[string]string{"standard_conforming_strings": "off", "client_encoding": "LATIN1"} {
		dsn := with(t, pgtest.DSN(t), func(u *url.URL) { u.RawQuery = url.Values{setting: {value}}.Encode() })
		_, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, ExecMode: "simple_protocol"}, nil)
		require.ErrorContains(t, err, setting)
		require.ErrorContains(t, err, value)
		require.ErrorContains(t, err, "ExecMode")
		open(t, postgres.Config{DSN: dsn, ExecMode: "exec"})
	}
}

func TestConnectFailures(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := open(t, postgres.Config{DSN: dsn})
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts, by its backlog, and never answers
	require.NoError(t, err)
	defer silent.Close()
	gone, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())

	database := get[string](t, db, "select current_database()")
	limited := database + "_limited"
	exec(t, db, "create role "+limited+" login password 'secret' connection limit 1")
	t.Cleanup(func() {
		_, err := db.Exec(context.WithoutCancel(t.Context()), "drop role "+limited)
		require.NoError(t, err)
	})
	asLimited := with(t, dsn, func(u *url.URL) { u.User = url.UserPassword(limited, "secret") })
	holder, err := pgx.Connect(t.Context(), asLimited)
	require.NoError(t, err)
	defer func() { require.NoError(t, holder.Close(context.WithoutCancel(t.Context()))) }()

	readOnly := pgtest.DSN(t)
	standby := open(t, postgres.Config{DSN: readOnly})
	exec(t, standby, "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$")

	at := func(addr string) string { return with(t, dsn, func(u *url.URL) { u.Host = addr }) }
	for name, c := range map[string]struct {
		dsn   string
		code  fault.Code
		state string // as a class, or whole
		text  string
	}{
		"refused":              {at(gone.Addr().String()), fault.DBUnavailable, "", "connection refused"},
		"silent":               {at(silent.Addr().String()), fault.DBUnavailable, "", "timed out"},
		"unknown host":         {at("nowhere.invalid:5432"), fault.DBUnavailable, "", "cannot be resolved"},
		"unknown role":         {with(t, dsn, func(u *url.URL) { u.User = url.UserPassword("nobody_at_all", "x") }), fault.DBAccessDenied, "28", "SQLSTATE 28"},
		"unknown database":     {with(t, dsn, func(u *url.URL) { u.Path = "/nothing_at_all" }), fault.DBAccessDenied, "3D000", "SQLSTATE 3D000"},
		"too many connections": {asLimited, fault.DBUnavailable, "53300", "SQLSTATE 53300"},
		"refused setting":      {with(t, dsn, func(u *url.URL) { u.RawQuery += "&no_such_setting=x" }), fault.Internal, "42704", "SQLSTATE 42704"},
		"read-only":            {readOnly, fault.DBUnavailable, "", "read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := postgres.Open(t.Context(), postgres.Config{DSN: c.dsn, AcquireTimeout: time.Second}, nil)
			require.Equal(t, c.code, fault.CodeOf(err), "Internal where nobody registered the state")
			require.ErrorContains(t, err, "postgres: connect: ")
			require.ErrorContains(t, err, c.text)
			require.Equal(t, c.state, sqlstate(err)[:len(c.state)])
			if c.state == "" {
				require.Empty(t, sqlstate(err))
			}
			u, perr := url.Parse(c.dsn)
			require.NoError(t, perr)
			password, _ := u.User.Password()
			for _, secret := range []string{u.Hostname(), u.Path[1:], u.User.Username() + " ", "password=" + password} {
				require.NotContains(t, err.Error(), secret)
			}
		})
	}
}

func TestManyCallersShareFewConnections(t *testing.T) {
	cfg := patient
	cfg.MaxConns = 2
	db := shop(t, cfg)
	var wg sync.WaitGroup
	errs := make(chan error, 40)
	for range cap(errs) {
		wg.Go(func() {
			_, err := db.Exec(t.Context(), "update shop.items set qty = qty + $1 where id = 1", 1)
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.EqualValues(t, 1+cap(errs), get[int64](t, db, "select qty from shop.items where id = 1"))
	require.LessOrEqual(t, db.Stat().TotalConns(), int32(2))
}
