package postgres_test

import (
	"context"
	"errors"
	"io"
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

// wire leads to a server, until it is cut: from then on nothing arrives any more, and no end says so. New connections work again.
type wire struct {
	mu   sync.Mutex
	dead chan struct{}
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.dead)
	w.dead = make(chan struct{})
}

// newWire returns a wire to the server of dsn, and the DSN that leads through it.
func newWire(t *testing.T, dsn string) (*wire, string) {
	t.Helper()
	w := &wire{dead: make(chan struct{})}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	target := u.Host
	u.Host = ln.Addr().String()
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			dead := w.dead
			w.mu.Unlock()
			server, err := (&net.Dialer{}).DialContext(context.WithoutCancel(t.Context()), "tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			conns.Go(func() { carry(client, server, dead) })
			conns.Go(func() { carry(server, client, dead) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		w.cut()
		conns.Wait()
	})
	return w, u.String()
}

// carry copies until either side ends; of a dead wire it swallows the rest.
func carry(from, to net.Conn, dead <-chan struct{}) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		select {
		case <-dead:
			continue
		default:
		}
		if _, err := to.Write(buf[:n]); err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

// within bounds a wait for something that must end by itself.
func within[T any](t *testing.T, what string, do func() T) (v T) {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- do() }()
	select {
	case v = <-done:
	case <-time.After(time.Minute):
		require.FailNow(t, "it never ended", what)
	}
	return v
}

func TestASilentServerHoldsNoConnection(t *testing.T) {
	drain := func(rows pgx.Rows, err error) error {
		for rows.Next() {
		}
		rows.Close()
		return errors.Join(err, rows.Err())
	}
	statements := map[string]func(q postgres.DBTX) error{
		"Exec":     func(q postgres.DBTX) error { _, err := q.Exec(t.Context(), "select $1::int8", 1); return err },
		"Query":    func(q postgres.DBTX) error { return drain(q.Query(t.Context(), "select $1::int8", 1)) },
		"QueryRow": func(q postgres.DBTX) error { return q.QueryRow(t.Context(), "select $1::int8", 1).Scan(new(int64)) },
		"SendBatch": func(q postgres.DBTX) error {
			b := &pgx.Batch{}
			b.Queue("select $1::int8", 1)
			return q.(postgres.Batcher).SendBatch(t.Context(), b).Close()
		},
	}
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			w, dsn := newWire(t, pgtest.DSN(t))
			db := open(t, postgres.Config{DSN: dsn, ExecMode: mode, MaxConns: 1})
			db.SetSilence(100*time.Millisecond - db.Config().StatementTimeout) // the margin alone is left
			connect := func() {                                                // the pool's only place becomes free once the dead connection is gone
				require.Eventually(t, func() bool { return db.Ping(t.Context()) == nil }, time.Minute, time.Millisecond)
			}
			given := func(name string, err error) {
				require.ErrorIs(t, err, fault.DBStatementTimeout, name)
				require.NotErrorIs(t, err, context.DeadlineExceeded, name)
				require.False(t, fault.Retryable(err), name)
			}
			for name, run := range statements {
				connect()
				w.cut()
				given(name, within(t, name, func() error { return run(db) }))

				connect()
				c := begin(t, db, tx.BeginOptions{})
				w.cut()
				given(name+" in a transaction", within(t, name, func() error { return run(c.DBTX) }))
				require.NoError(t, within(t, name, func() error { return c.Rollback(t.Context()) }))
			}
			connect()
			w.cut()
			given("Begin", within(t, "Begin", func() error { _, err := db.Begin(t.Context(), tx.BeginOptions{}); return err }))
			connect()
			c := begin(t, db, tx.BeginOptions{})
			w.cut()
			given("Savepoint", within(t, "Savepoint", func() error { return c.Savepoint(t.Context(), "s", false) }))
			require.NoError(t, c.Rollback(t.Context()))
		})
	}
}

// Rows that were read in part are bounded too, and what is cut is the statement's own connection.
func TestAServerThatGoesSilentBetweenRows(t *testing.T) {
	w, dsn := newWire(t, pgtest.DSN(t))
	db := open(t, postgres.Config{DSN: dsn, MaxConns: 1, StatementTimeout: 10 * time.Second})
	db.SetSilence(-9 * time.Second)
	rows, err := db.Query(t.Context(), "select repeat('x', 1000) from generate_series(1, 1000000)")
	require.NoError(t, err)
	require.True(t, rows.Next())
	w.cut()
	err = within(t, "rows", func() error {
		for rows.Next() {
		}
		return rows.Err()
	})
	require.ErrorIs(t, err, fault.DBStatementTimeout)
	require.Eventually(t, func() bool { return db.Ping(t.Context()) == nil }, time.Minute, time.Millisecond)
}

// The bound follows the transaction's own statement_timeout, and ends with the statement.
func TestTheBoundIsOfOneStatement(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := open(t, postgres.Config{DSN: pgtest.DSN(t), ExecMode: mode, MaxConns: 1, StatementTimeout: 10 * time.Second})
			db.SetSilence(-9800 * time.Millisecond)
			other := open(t, postgres.Config{DSN: db.Config().DSN})
			pid := backend(t, db)
			c := begin(t, db, tx.BeginOptions{Options: tx.Options{StatementTimeout: time.Minute}})
			exec(t, c, "select pg_sleep(0.3)")
			exec(t, c, "select pg_sleep($1)", 0.3)
			require.NoError(t, c.Commit(t.Context()))
			b := &pgx.Batch{} // each of its statements has as long
			b.Queue("select pg_sleep(0.15)")
			b.Queue("select pg_sleep(0.15)")
			require.NoError(t, db.SendBatch(t.Context(), b).Close())
			// Longer than the bound of a statement: it was lifted, or the idle connection would be found dead.
			require.Equal(t, pid, backend(t, db))
			exec(t, other, "select pg_sleep(0.3)")
			require.Equal(t, pid, backend(t, db))
			c = begin(t, db, tx.BeginOptions{})
			exec(t, c, "select 1")
			exec(t, other, "select pg_sleep(0.3)")
			require.NoError(t, c.Commit(t.Context()), "nor does it reach COMMIT")
			require.Equal(t, pid, backend(t, db))
		})
	}
}
