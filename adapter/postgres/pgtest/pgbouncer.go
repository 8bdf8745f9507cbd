package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/testprog"
)

// PgBouncer starts a PgBouncer in transaction mode before the server of dsn, which ends with the test, and returns the DSN that leads
// through it. The database gets the defaults that `caskeleton migrate grants` writes for the role.
func PgBouncer(tb testing.TB, dsn string) string {
	tb.Helper()
	conn := Connect(tb, dsn)
	for setting, value := range map[string]string{"statement_timeout": "10s", "lock_timeout": "3s", "idle_in_transaction_session_timeout": "10s", "search_path": `""`, "timezone": "UTC"} {
		_, err := conn.Exec(tb.Context(), "alter database "+pgx.Identifier{conn.Config().Database}.Sanitize()+" set "+setting+" = '"+value+"'")
		require.NoError(tb, err)
	}
	return PgBouncerAlone(tb, dsn)
}

// PgBouncerAlone is PgBouncer over a database whose defaults are left as they are.
func PgBouncerAlone(tb testing.TB, dsn string) string {
	tb.Helper()
	program, err := testprog.Find(tb.Context(), "pgbouncer", "pgbouncer")
	require.NoError(tb, err)
	cfg, err := pgx.ParseConfig(dsn)
	require.NoError(tb, err)
	addr := freeAddress(tb)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(tb, err)
	dir, err := os.MkdirTemp("", "caskeleton-pgbouncer-") //nolint:usetesting // TempDir is closed to another user under root
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	ini := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(tb, os.WriteFile(ini, fmt.Appendf(nil, `[databases]
* = host=%s port=%d user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 40
max_client_conn = 200
`, cfg.Host, cfg.Port, cfg.User, cfg.Password, port), 0o600))

	cmd := program.Command(context.WithoutCancel(tb.Context()), ini)
	cmd.Stdout, cmd.Stderr = tb.Output(), tb.Output()
	cmd.SysProcAttr = dropRoot(tb, dir, ini)
	require.NoError(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
	})
	through := (&url.URL{Scheme: "postgres", User: url.User(cfg.User), Host: addr, Path: "/" + cfg.Database, RawQuery: "sslmode=disable"}).String()
	require.Eventually(tb, func() bool {
		conn, err := (&net.Dialer{}).DialContext(tb.Context(), "tcp", addr)
		return err == nil && conn.Close() == nil
	}, 20*time.Second, 10*time.Millisecond, "PgBouncer did not start")
	return through
}

// dropRoot hands the files to a user whom PgBouncer is willing to run as, where we are root.
func dropRoot(tb testing.TB, files ...string) *syscall.SysProcAttr {
	tb.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	require.NoError(tb, err, "PgBouncer refuses to run as root")
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	require.NoError(tb, err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	require.NoError(tb, err)
	for _, f := range files {
		require.NoError(tb, os.Chown(f, int(uid), int(gid)))
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// freeAddress was free a moment ago.
func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	require.NoError(tb, l.Close())
	return l.Addr().String()
}
