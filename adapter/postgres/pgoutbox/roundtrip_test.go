package pgoutbox_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// meter is a proxy that counts the server's ReadyForQuery messages: one ends each round trip.
type meter struct{ ready atomic.Int64 }

// through returns a DSN that leads through a proxy on this machine.
func (m *meter) through(t *testing.T, dsn string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	network, server := pgconn.NetworkAddress(cfg.Host, cfg.Port)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's own
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial(network, server) //nolint:noctx // a test's own
			if err != nil {
				_ = client.Close()
				return
			}
			go func() { _, _ = io.Copy(upstream, client); _ = upstream.Close() }()
			go func() { m.count(client, upstream); _ = client.Close() }()
		}
	}()
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(cfg.User, cfg.Password), Host: listener.Addr().String(), Path: cfg.Database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

// count forwards messages of the server: a type, a length that includes itself, a body.
func (m *meter) count(client io.Writer, server io.Reader) {
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(server, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return
		}
		if head[0] == 'Z' {
			m.ready.Add(1)
		}
		if _, err := client.Write(slices.Concat(head, body)); err != nil {
			return
		}
	}
}

// trips counts those of call, once the statements are known to the connection.
func (m *meter) trips(t *testing.T, call func()) int64 {
	t.Helper()
	call()
	before := m.ready.Load()
	call()
	return m.ready.Load() - before
}

func TestRoundTrips(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			direct := newFixture(t, "")
			m := &meter{}
			f := &fixture{dsn: direct.dsn}
			f.db = open(t, postgres.Config{DSN: m.through(t, direct.dsn), ExecMode: mode, MaxConns: 1})
			f.driver = pgoutbox.New(f.db)
			var err error
			f.runner, err = tx.NewRunner(f.db, nil)
			require.NoError(t, err)
			f.outbox, err = outbox.New(f.driver, nil)
			require.NoError(t, err)

			for _, level := range []tx.Isolation{tx.ReadCommitted, tx.RepeatableRead} {
				f.runner = f.runner.With(tx.Options{Isolation: level})
				require.EqualValues(t, 3, m.trips(t, func() {
					f.commit(t, event("a", "1"), event("b", "1"), event("a", "2"))
				}), "BEGIN, the append, COMMIT")
			}
			var claims []outbox.Claim
			require.EqualValues(t, 2, m.trips(t, func() {
				direct.expire(t)
				claims = f.claim(t, request("r"))
			}), "the claim, and the runs")
			require.EqualValues(t, 1, m.trips(t, func() {
				_, err := f.driver.Renew(t.Context(), claims, 1)
				require.NoError(t, err)
			}))
			require.EqualValues(t, 1, m.trips(t, func() {
				_, err := f.driver.Settle(t.Context(), []outbox.Settlement{done(claims[0]), done(claims[1])})
				require.NoError(t, err)
			}))
			require.EqualValues(t, 1, m.trips(t, func() {
				_, _, _, err := f.driver.NextDue(t.Context())
				require.NoError(t, err)
			}))
		})
	}
}
