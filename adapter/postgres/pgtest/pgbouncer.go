package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/testprog"
)

// pgBouncerEnv names the program of another PgBouncer than the system's, which may be older, or newer, than what is to be tried.
const pgBouncerEnv = "PGTEST_PGBOUNCER"

// ThroughPgBouncer runs tests, which take their exec modes from *modes and what they connect to from *through, through one PgBouncer in
// transaction mode, in the modes that work there. It puts both back in the end.
func ThroughPgBouncer(t *testing.T, modes *[]string, through *func(*testing.T, string) string, tests map[string]func(*testing.T)) {
	t.Helper()
	before, direct := *modes, *through
	t.Cleanup(func() { *modes, *through = before, direct })
	var mu sync.Mutex
	addresses := map[string]string{}
	*modes = PoolerModes(t)
	*through = func(inner *testing.T, dsn string) string { //nolint:thelper // the other one outlives it
		inner.Helper()
		cfg, err := pgx.ParseConfig(dsn)
		require.NoError(inner, err)
		mu.Lock()
		defer mu.Unlock()
		setDefaults(inner, dsn)
		who := cfg.User + "@" + net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))
		if addresses[who] == "" { // nodes of one service meet the sessions that each other leave behind
			addresses[who] = startPgBouncer(t, cfg)
		}
		return throughAddress(addresses[who], cfg)
	}
	for name, test := range tests {
		t.Run(name, test)
	}
}

// PoolerModes are the exec modes that work through the PgBouncer of these tests: all, or before 1.21 all but cache_statement.
func PoolerModes(tb testing.TB) []string {
	tb.Helper()
	if keepsPrepared(tb) {
		return ExecModes()
	}
	return slices.DeleteFunc(ExecModes(), func(mode string) bool { return mode == "cache_statement" })
}

func keepsPrepared(tb testing.TB) bool {
	tb.Helper()
	out, err := pgBouncer(tb).Command(tb.Context(), "--version").Output()
	require.NoError(tb, err)
	var major, minor int
	_, err = fmt.Sscanf(string(out), "PgBouncer %d.%d", &major, &minor)
	require.NoError(tb, err, "%s", out)
	return major > 1 || minor >= 21
}

// PgBouncer starts a PgBouncer in transaction mode before the server of dsn, which ends with the test, and returns the DSN that leads
// through it. The database gets the defaults that `caskeleton migrate grants` writes for the role, where it has none. settings are lines of
// pgbouncer.ini.
func PgBouncer(tb testing.TB, dsn string, settings ...string) string {
	tb.Helper()
	setDefaults(tb, dsn)
	return PgBouncerAlone(tb, dsn, settings...)
}

// PgBouncerAlone is PgBouncer over a database whose defaults are left as they are.
func PgBouncerAlone(tb testing.TB, dsn string, settings ...string) string {
	tb.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	require.NoError(tb, err)
	return throughAddress(startPgBouncer(tb, cfg, settings...), cfg)
}

// setDefaults leaves a role alone that has its own, and could not set those of the database.
func setDefaults(tb testing.TB, dsn string) {
	tb.Helper()
	conn := Connect(tb, dsn)
	var limited bool
	require.NoError(tb, conn.QueryRow(tb.Context(), "select current_setting('statement_timeout') <> '0'").Scan(&limited))
	if limited {
		return
	}
	for setting, value := range map[string]string{"statement_timeout": "10s", "lock_timeout": "3s", "idle_in_transaction_session_timeout": "10s", "search_path": `""`, "timezone": "UTC"} {
		_, err := conn.Exec(tb.Context(), "alter database "+pgx.Identifier{conn.Config().Database}.Sanitize()+" set "+setting+" = '"+value+"'")
		require.NoError(tb, err)
	}
}

// throughAddress is what leads to the database of cfg by a PgBouncer, which knows the password.
func throughAddress(addr string, cfg *pgx.ConnConfig) string {
	return (&url.URL{Scheme: "postgres", User: url.User(cfg.User), Host: addr, Path: "/" + cfg.Database, RawQuery: "sslmode=disable"}).String()
}

// startPgBouncer returns the address of one that leads to all databases of the server, as the user of cfg.
func startPgBouncer(tb testing.TB, cfg *pgx.ConnConfig, settings ...string) string {
	tb.Helper()
	if len(settings) == 0 && keepsPrepared(tb) {
		settings = []string{"max_prepared_statements = 200"} // the default from 1.24 on
	}
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
server_tls_sslmode = disable
pool_mode = transaction
default_pool_size = 40
max_client_conn = 200
%s
`, cfg.Host, cfg.Port, cfg.User, cfg.Password, port, strings.Join(settings, "\n")), 0o600))

	cmd := pgBouncer(tb).Command(context.WithoutCancel(tb.Context()), ini)
	cmd.Stdout, cmd.Stderr = tb.Output(), tb.Output()
	cmd.SysProcAttr = dropRoot(tb, dir, ini)
	require.NoError(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
	})
	require.Eventually(tb, func() bool {
		conn, err := (&net.Dialer{}).DialContext(tb.Context(), "tcp", addr)
		return err == nil && conn.Close() == nil
	}, 20*time.Second, 10*time.Millisecond, "PgBouncer did not start")
	return addr
}

func pgBouncer(tb testing.TB) testprog.Program {
	tb.Helper()
	if path := os.Getenv(pgBouncerEnv); path != "" {
		return testprog.Program{Path: path}
	}
	program, err := testprog.Find(tb.Context(), "pgbouncer", "pgbouncer")
	require.NoError(tb, err)
	return program
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
