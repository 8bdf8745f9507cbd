package pgtest

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/embedded"
)

func TestPrivateServer(t *testing.T) {
	var dsn, dir string
	t.Run("used", func(t *testing.T) {
		srv := PrivateServer(t, &embedded.Options{})
		dsn, dir = srv.DSN(), srv.DataDir()
		var fsync string
		require.NoError(t, Connect(t, dsn).QueryRow(t.Context(), `SHOW fsync`).Scan(&fsync))
		require.Equal(t, "on", fsync)
		require.NoError(t, srv.StopImmediate(t.Context()))
		_, err := pgx.Connect(t.Context(), dsn)
		require.Error(t, err)
		again, err := embedded.Start(t.Context(), embedded.Options{DataDir: dir, BinDir: srv.BinDir(), FsyncOff: true})
		require.NoError(t, err)
		require.Equal(t, dsn, again.DSN())
	})
	requireNobodyListens(t, dsn)
	require.NoDirExists(t, dir)
}

// requireNobodyListens asks for more than a refused login: a server whose files were removed under it refuses, too.
func requireNobodyListens(t *testing.T, dsn string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	_, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestSweepEndsPrivateServersOfKilledRuns(t *testing.T) {
	tmp := t.TempDir()
	require.NoError(t, os.Chmod(tmp, 0o711))
	require.NoError(t, os.Chmod(filepath.Dir(tmp), 0o711))
	t.Setenv("TMPDIR", tmp)
	srv := PrivateServer(t, nil)
	sweepServers(t)
	require.NoError(t, Connect(t, srv.DSN()).Ping(t.Context()), "a young one stays")
	long := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(srv.DataDir(), long, long))
	sweepServers(t)
	require.NoDirExists(t, srv.DataDir())
	requireNobodyListens(t, srv.DSN())
}
