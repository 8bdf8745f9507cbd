//go:build e2e

package redistest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/redistest"
)

const (
	soon    = 30 * time.Second
	instant = 5 * time.Millisecond
	child   = "REDISTEST_TEST_CHILD"
)

func TestAServerStopsForgetsAndComesBack(t *testing.T) {
	srv := redistest.Start(t)
	require.Equal(t, "OK", srv.Do("SET", "k", "v"))
	require.Equal(t, "v", srv.Do("GET", "k"))
	srv.Kill()
	require.False(t, answers(srv.Addr()))
	srv.Restart()
	require.Empty(t, srv.Do("GET", "k"))
	srv.Pause()
	srv.Resume()
	require.Equal(t, "PONG", srv.Do("PING"))
}

func TestAReplicaFollowsAndIsPromoted(t *testing.T) {
	primary, replica := redistest.Start(t), redistest.Start(t)
	require.Equal(t, "OK", primary.Do("SET", "k", "v"))
	replica.ReplicaOf(primary.Addr())
	require.Equal(t, "v", replica.Do("GET", "k"))
	replica.ReplicaOf("")
	require.Equal(t, "OK", replica.Do("SET", "k", "w"))
}

func TestAProxyIsSilentMovesAndCuts(t *testing.T) {
	one, two := redistest.Start(t), redistest.Start(t)
	require.Equal(t, "OK", one.Do("SET", "k", "one"))
	require.Equal(t, "OK", two.Do("SET", "k", "two"))
	p := redistest.NewProxy(t, one.Addr())
	conn, lines := dial(t, p.Addr())
	send(t, conn)
	require.Equal(t, "one", <-lines)
	p.Silence()
	send(t, conn)
	require.Equal(t, "PONG", one.Do("PING"), "the server itself is well")
	require.Empty(t, lines)
	p.Speak()
	require.Equal(t, "one", <-lines, "what was held back arrives")
	p.Retarget(two.Addr())
	_, open := <-lines
	require.False(t, open, "the old connection is cut")
	conn, lines = dial(t, p.Addr())
	send(t, conn)
	require.Equal(t, "two", <-lines)
}

func dial(t *testing.T, addr string) (net.Conn, <-chan string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	lines := make(chan string, 16)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(conn)
		for s.Scan() {
			if s.Text()[0] != '$' {
				lines <- s.Text()
			}
		}
	}()
	return conn, lines
}

func send(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := io.WriteString(conn, "GET k\r\n")
	require.NoError(t, err)
}

// The child starts a server, prints its address and is killed.
func TestAServerDiesWithItsProcess(t *testing.T) {
	if os.Getenv(child) != "" {
		srv := redistest.Start(t)
		_, _ = fmt.Fprintln(os.Stdout, srv.Addr())
		<-t.Context().Done()
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestAServerDiesWithItsProcess$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	s := bufio.NewScanner(out)
	require.True(t, s.Scan())
	addr := s.Text()
	require.True(t, answers(addr), addr)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return !answers(addr) }, soon, instant, "the server outlives who started it")
}

func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, soon) //nolint:noctx // it is bounded
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
