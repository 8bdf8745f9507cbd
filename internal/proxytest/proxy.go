package proxytest

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy listens on the loopback interface in front of one server. Safe for concurrent use.
type Proxy struct {
	listener net.Listener
	target   string
	dsn      string
	running  sync.WaitGroup
	trips    atomic.Int64

	mu     sync.Mutex
	armed  *Fault
	open   map[net.Conn]struct{}
	closed bool
	closes chan struct{}
}

// New starts a proxy in front of the server of dsn, which must be a URL and reach it by TCP.
func New(tb testing.TB, dsn string) *Proxy {
	tb.Helper()
	u, err := url.Parse(dsn)
	require.NoError(tb, err)
	ctx := context.WithoutCancel(tb.Context())
	p := &Proxy{target: u.Host, open: map[net.Conn]struct{}{}, closes: make(chan struct{})}
	p.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	u.Host = p.listener.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")                             // messages are looked into
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20") // which pgx does not read as a space
	p.dsn = u.String()
	p.running.Go(func() { p.accept(ctx) })
	tb.Cleanup(p.close)
	return p
}

// DSN is the DSN given to New, by way of the proxy.
func (p *Proxy) DSN() string { return p.dsn }

// Trips returns how many round trips clients have made so far, beside opening their sessions.
func (p *Proxy) Trips() int64 { return p.trips.Load() }

// Break arms a fault for the next message that holds pattern, in the place of one that has not struck yet. The pattern is looked for
// in the bytes of one message: "commit\x00" is a COMMIT in the simple protocol; with prepared statements only the arguments are there.
func (p *Proxy) Break(mode Mode, pattern string) *Fault {
	f := &Fault{mode: mode, pattern: []byte(pattern), struck: make(chan struct{}), pass: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = f
	return f
}

// BreakAt arms a fault for the n-th statement from now on, the first being 1, that may leave something behind: DDL, DML and COMMIT.
func (p *Proxy) BreakAt(mode Mode, n int) *Fault {
	f := &Fault{mode: mode, skip: n, struck: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = f
	return f
}

// strikes returns the armed fault, for one caller, if it is meant for this message.
func (p *Proxy) strikes(message []byte) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.armed
	if f == nil {
		return nil
	}
	if f.skip > 0 {
		if !writes(message) {
			return nil
		}
		if f.skip--; f.skip > 0 {
			return nil
		}
	} else if !bytes.Contains(message, f.pattern) {
		return nil
	}
	p.armed = nil
	return f
}

// writes reports whether message is a Query or a Parse of such a statement.
func writes(message []byte) bool {
	if len(message) < 6 || message[0] != 'Q' && message[0] != 'P' {
		return false
	}
	sql := message[5:]
	if message[0] == 'P' { // the name of the statement comes first
		_, sql, _ = bytes.Cut(sql, []byte{0})
	}
	sql = bytes.ToLower(bytes.TrimSpace(sql))
	for _, harmless := range []string{"select", "set", "reset", "begin", "rollback", "-- ping"} {
		if bytes.HasPrefix(sql, []byte(harmless)) {
			return false
		}
	}
	return true
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.connect(ctx, client) })
	}
}

// connect serves one connection until both of its directions have ended.
func (p *Proxy) connect(ctx context.Context, client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.target)
	if err != nil { // to the client it is a server that is not there
		_ = client.Close()
		return
	}
	if !p.keep(client, server) {
		return
	}
	defer p.drop(client, server)
	l := &link{proxy: p, client: client, server: server}
	var answers sync.WaitGroup
	answers.Go(l.answers)
	l.requests()
	answers.Wait()
}

// keep remembers connections for close; it refuses, and closes them, once that has begun.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.closed {
			_ = c.Close()
			continue
		}
		p.open[c] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.open, c)
	}
}

func (p *Proxy) close() {
	_ = p.listener.Close()
	close(p.closes)
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}
