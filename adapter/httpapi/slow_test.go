package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// pipes is a listener whose connections buffer nothing: what the server writes waits until the client reads it.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// A client that is slow to read must not pin a connection of the pool, which here has one.
func TestASlowReaderHoldsNoConnection(t *testing.T) {
	f := openFixture(t, postgres.Config{DSN: migrationstest.DSN(t, migrations.Idempotency()), MaxConns: 1}, &idempotency.Options{InlineLimit: 1 << 20})
	body := bytes.Repeat([]byte("x"), 512<<10)
	handler := httpapi.Transactional(f.guard, httpapi.Policy{}, effect(func(context.Context, *tx.Tx, *httpapi.Request) (*httpapi.Response, error) {
		return &httpapi.Response{Status: http.StatusCreated, Header: http.Header{"Content-Type": {"text/plain"}}, Body: body}, nil
	}))
	ln := newPipes()
	server := httpapi.NewServer("", handler, nil)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})

	for _, what := range []string{"the first answer", "a repeat from the store"} {
		client := ln.dial()
		require.NoError(t, client.SetDeadline(time.Now().Add(time.Minute)))
		_, err := io.WriteString(client, strings.ReplaceAll("POST /things/1 HTTP/1.1\nHost: test\nIdempotency-Key: k\nContent-Type: application/json\nContent-Length: 2\nConnection: close\n\n", "\n", "\r\n")+"{}")
		require.NoError(t, err)
		reader := bufio.NewReaderSize(client, 16)
		line, err := reader.ReadString('\n') // from here on the client reads nothing
		require.NoError(t, err)
		require.Equal(t, "HTTP/1.1 201 Created\r\n", line)

		require.Zero(t, f.db.Stat().AcquiredConns(), what)
		_, err = f.db.Exec(t.Context(), `update shop.effect set name = 'free'`)
		require.NoError(t, err, what)

		rest, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.True(t, bytes.HasSuffix(rest, body), what)
		require.NoError(t, client.Close())
	}
	require.Equal(t, 1, f.count(t, "shop.effect"))
}

func TestACallerThatLeavesWithinTheAnswerGetsItAgain(t *testing.T) {
	f := newFixture(t)
	body := strings.Repeat("x", 512<<10)
	for name, guarded := range map[string]func(p httpapi.Policy) http.Handler{
		"external": func(p httpapi.Policy) http.Handler {
			return httpapi.External(f.guard, p)(says(http.StatusCreated, body))
		},
		"transactional": func(p httpapi.Policy) http.Handler {
			return httpapi.Transactional(f.guard, p, answers(httpapi.Response{Status: http.StatusCreated, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte(body)}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := guarded(httpapi.Policy{Route: "/" + name})
			ln := newPipes() // which buffers nothing: the rest of the answer is never written
			server := httpapi.NewServer("", h, slog.New(slog.DiscardHandler))
			served := make(chan error, 1)
			go func() { served <- server.Serve(ln) }()
			t.Cleanup(func() {
				require.NoError(t, server.Close())
				require.ErrorIs(t, <-served, http.ErrServerClosed)
			})
			client := ln.dial()
			_, err := io.WriteString(client, rawHead+"Idempotency-Key: k\r\nContent-Length: 2\r\n\r\n{}")
			require.NoError(t, err)
			_, err = client.Read(make([]byte, 1))
			require.NoError(t, err)
			e, err := f.guard.Show(t.Context(), idempotency.Key{Method: "POST", Route: "/" + name, Client: "k"})
			require.NoError(t, err)
			require.Equal(t, idempotency.Completed, e.State)
			require.NoError(t, client.Close())

			s := serve(t, func(m *httpapi.Mux) { m.Handle("POST /things/{id}", h) })
			res := post(t, s, "k", `{}`)
			require.Equal(t, "true", res.Header.Get("Idempotent-Replayed"))
			require.Equal(t, body, res.body)
		})
	}
}
