package embedded

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// childDir makes this test binary a program that starts the server of that directory, prints its pid, and stays until it is killed.
const childDir = "EMBEDDED_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		srv, err := Start(context.Background(), Options{DataDir: dir, FsyncOff: true})
		if err != nil {
			_, _ = fmt.Fprintln(os.Stdout, err)
			os.Exit(1)
		}
		_, _ = fmt.Fprintln(os.Stdout, srv.PID())
		<-make(chan struct{}, 1)
	}
	os.Exit(m.Run())
}

// startChild runs the program above in a process group of its own and returns what it printed.
func startChild(t *testing.T, dir string) (child *exec.Cmd, line func() string) {
	t.Helper()
	child = exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir)
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() { killGroup(child) })
	return child, func() string {
		s := bufio.NewScanner(out)
		require.True(t, s.Scan(), "the child printed nothing")
		return s.Text()
	}
}

// killGroup kills the child and all that a terminal's Ctrl-C would reach with it.
func killGroup(child *exec.Cmd) {
	_ = syscall.Kill(-child.Process.Pid, syscall.SIGKILL)
	_ = child.Wait()
}

// newDir returns a directory that PostgreSQL's user can reach under root, too, which t.TempDir is not.
func newDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "caskeleton-embedded-test-") //nolint:usetesting // as said
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o711))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func mustStart(t *testing.T, o Options) *Server {
	t.Helper()
	o.FsyncOff = true
	stopAfter(t, o.DataDir)
	srv, err := Start(testContext(t), o)
	require.NoError(t, err)
	return srv
}

func stopAfter(t *testing.T, dir string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		require.NoError(t, Stop(ctx, dir))
	})
}

// ask runs one statement that returns one text.
func ask(t *testing.T, dsn, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	var s string
	require.NoError(t, conn.QueryRow(t.Context(), sql).Scan(&s))
	return s
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func pidOf(t *testing.T, line string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err, "the child could not start the server: %s", line)
	return pid
}
