package redistest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/testprog"
)

const (
	startTimeout = 30 * time.Second
	pollEvery    = 5 * time.Millisecond
	portTries    = 5 // a port that was free a moment ago may be another's by now
)

// watchdog kills the server when the test's process is gone: its standard input then ends without a line.
const watchdog = `read line || kill -9 "$1"`

// Server is a Redis server. Its methods fail the test where they cannot do what they say; they are for the test's goroutine,
// but for Pause and Resume.
type Server struct {
	tb   testing.TB
	prog testprog.Program
	port int
	args []string
	run  *process // nil while it is killed
}

type process struct {
	cmd    *exec.Cmd
	leash  io.WriteCloser // of the watchdog
	guard  *exec.Cmd
	log    *logBuffer
	exited chan struct{}
}

// Start starts a server that ends with the test. args are further ones of redis-server's command line, such as "--maxmemory", "10mb".
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	prog, err := testprog.Find(context.WithoutCancel(tb.Context()), "redis-server", "redis-server")
	require.NoError(tb, err)
	s := &Server{tb: tb, prog: prog, args: args}
	tb.Cleanup(func() {
		if s.run != nil {
			s.run.kill()
		}
	})
	for range portTries {
		s.port = freePort(tb)
		if err = s.launch(); err == nil {
			return s
		}
	}
	require.NoError(tb, err, "redistest: start redis-server")
	return nil
}

// Addr is the server's host:port. It stays the same over a restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Pause stops the server's process where it stands (SIGSTOP): connections stay, and nothing answers.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume undoes Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// Kill ends the server at once (SIGKILL). What it held is lost.
func (s *Server) Kill() {
	s.run.kill()
	s.run = nil
}

// Restart starts the killed server again: the same address, and no data.
func (s *Server) Restart() {
	s.tb.Helper()
	require.NoError(s.tb, s.launch(), "redistest: restart redis-server")
}

// ReplicaOf makes the server a replica of the one at addr, and waits until it has that one's data. An empty addr promotes it.
func (s *Server) ReplicaOf(addr string) {
	s.tb.Helper()
	if addr == "" {
		require.Equal(s.tb, "OK", s.Do("REPLICAOF", "NO", "ONE"))
		return
	}
	host, port, err := net.SplitHostPort(addr)
	require.NoError(s.tb, err)
	require.Equal(s.tb, "OK", s.Do("REPLICAOF", host, port))
	require.Eventually(s.tb, func() bool { return strings.Contains(s.Do("INFO", "replication"), "master_link_status:up") },
		startTimeout, pollEvery, "the replica does not reach its primary")
}

// Do sends a command of words without spaces over a connection of its own and returns the answer: a line's text, or a bulk string.
func (s *Server) Do(words ...string) string {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.tb.Context()), startTimeout)
	defer cancel()
	answer, err := s.ask(ctx, words...)
	require.NoError(s.tb, err)
	return answer
}

func (s *Server) ask(ctx context.Context, words ...string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", strings.Join(words, " ")); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, text := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '-':
		return "", errors.New(text)
	case '$':
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return "", err
		}
		bulk := make([]byte, n)
		_, err = io.ReadFull(r, bulk)
		return string(bulk), err
	}
	return text, nil
}

func (s *Server) signal(sig syscall.Signal) {
	s.tb.Helper()
	if err := s.run.cmd.Process.Signal(sig); err != nil {
		s.tb.Errorf("redistest: %v", err)
	}
}

// launch starts the process and waits until it answers.
func (s *Server) launch() error {
	ctx := context.WithoutCancel(s.tb.Context()) // clean-ups still use the server
	p := &process{log: &logBuffer{}, exited: make(chan struct{})}
	p.cmd = s.prog.Command(ctx, append([]string{
		"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", s.tb.TempDir(),
		"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
	}, s.args...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	p.guard = exec.CommandContext(ctx, "/bin/sh", "-c", watchdog, "sh", strconv.Itoa(p.cmd.Process.Pid)) //nolint:gosec // a constant and a number
	var err error
	if p.leash, err = p.guard.StdinPipe(); err == nil {
		err = p.guard.Start()
	}
	if err != nil {
		_ = p.cmd.Process.Kill()
		return err
	}
	if err := s.awaitReady(ctx, p); err != nil {
		p.kill()
		return fmt.Errorf("%w; it says:\n%s", err, p.log)
	}
	s.run = p
	return nil
}

func (s *Server) awaitReady(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if answer, err := s.ask(ctx, "PING"); err == nil && answer == "PONG" && bytes.Contains(p.log.Bytes(), []byte("Ready to accept connections")) {
			return nil // the log is this server's, though the port may be another's
		}
		select {
		case <-p.exited:
			return errors.New("redis-server ended")
		case <-ctx.Done():
			return fmt.Errorf("redis-server is not ready: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
	_, _ = io.WriteString(p.leash, "done\n")
	_ = p.leash.Close()
	_ = p.guard.Wait()
}

func freePort(tb testing.TB) int {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(context.WithoutCancel(tb.Context()), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	require.True(tb, ok)
	return addr.Port
}

// logBuffer is written by the process and read by the test.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buf.Bytes())
}

func (b *logBuffer) String() string { return string(b.Bytes()) }
