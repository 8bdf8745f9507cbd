package redistest

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy is the network between a client and a server, or a replica and its primary. Safe for concurrent use.
type Proxy struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	moved  *sync.Cond // silent or closed have changed
	target string
	silent bool
	closed bool
	conns  map[net.Conn]struct{}
}

// NewProxy forwards connections to target, a host:port, until the test ends.
func NewProxy(tb testing.TB, target string) *Proxy {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(context.WithoutCancel(tb.Context()), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	p := &Proxy{listener: l, target: target, conns: map[net.Conn]struct{}{}}
	p.moved = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	tb.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.closed = true
		p.moved.Broadcast()
		p.mu.Unlock()
		p.Cut()
		p.wg.Wait()
	})
	return p
}

// Addr is where clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Silence swallows what is sent from now on, without a sign to either side, until Speak delivers it.
func (p *Proxy) Silence() { p.setSilent(true) }

// Speak undoes Silence.
func (p *Proxy) Speak() { p.setSilent(false) }

// Cut breaks the open connections. What Silence held back is lost with them.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
	p.moved.Broadcast()
}

// Retarget sends new connections elsewhere and breaks the open ones, as a failover does.
func (p *Proxy) Retarget(target string) {
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	p.Cut()
}

func (p *Proxy) setSilent(silent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = silent
	p.moved.Broadcast()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.wg.Go(func() { p.forward(server, client) })
		p.wg.Go(func() { p.forward(client, server) })
	}
}

// forward copies until either side ends, and then ends both.
func (p *Proxy) forward(to, from net.Conn) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, to)
		delete(p.conns, from)
		_ = to.Close()
		_ = from.Close()
		p.moved.Broadcast()
	}()
	_, _ = io.Copy(writerFunc(func(b []byte) (int, error) {
		if !p.awaitSpeech(from) {
			return 0, net.ErrClosed
		}
		return to.Write(b)
	}), readerOnly{from})
}

// awaitSpeech waits while the proxy is silent, and reports whether the connection is still there.
func (p *Proxy) awaitSpeech(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if _, open := p.conns[c]; !open || p.closed {
			return false
		}
		if !p.silent {
			return true
		}
		p.moved.Wait()
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// readerOnly hides the connection's shortcuts past the writer.
type readerOnly struct{ io.Reader }
