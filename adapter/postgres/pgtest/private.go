package pgtest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/embedded"
)

const privatePrefix = "caskeleton-private-"

// PrivateServer starts a server that is this test's alone, for tests that stop or kill PostgreSQL. It is stopped, and its data removed,
// when the test ends. o may be nil, which means without fsync and otherwise the defaults; an empty o.DataDir means a temporary one.
// DATABASE_URL has no say in it.
func PrivateServer(tb testing.TB, o *embedded.Options) *embedded.Server {
	tb.Helper()
	opts := embedded.Options{FsyncOff: true}
	if o != nil {
		opts = *o
	}
	if opts.Logger == nil {
		opts.Logger = logger(tb)
	}
	if opts.DataDir == "" {
		dir, err := os.MkdirTemp("", privatePrefix) //nolint:usetesting // TempDir is closed to PostgreSQL's user under root
		require.NoError(tb, err)
		require.NoError(tb, os.Chmod(dir, 0o711)) //nolint:gosec // PostgreSQL's user has to pass through
		opts.DataDir = dir
	}
	var srv *embedded.Server
	tb.Cleanup(func() {
		if err := removeServer(tb, opts.DataDir); err != nil {
			tb.Errorf("pgtest: remove the test's server: %v", err)
		} else if srv != nil {
			_ = os.RemoveAll(srv.DataDir()) // under root it may be elsewhere
		}
	})
	var err error
	srv, err = start(tb, opts)
	require.NoError(tb, err, "pgtest needs a PostgreSQL that it can start")
	return srv
}

func removeServer(tb testing.TB, dir string) error {
	tb.Helper()
	ctx, cancel := cleanupContext(tb)
	defer cancel()
	if err := embedded.Stop(ctx, dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// sweepServers ends the private servers of killed runs.
func sweepServers(tb testing.TB) {
	tb.Helper()
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), privatePrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < time.Hour {
			continue
		}
		if err := removeServer(tb, dir); err != nil {
			tb.Logf("pgtest: a private server of a killed run stays for now: %v", err)
		}
	}
}
