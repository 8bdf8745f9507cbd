package embedded

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Under root PostgreSQL's user cannot enter a directory that root alone may, and gets another place; everybody else gets what was asked.
func TestUnreachableDataDir(t *testing.T) {
	parent := newDir(t)
	require.NoError(t, os.Chmod(parent, 0o700))
	asked := filepath.Join(parent, "deep", "pg")
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(elsewhere(asked))) })
	var log bytes.Buffer
	srv := mustStart(t, Options{DataDir: asked, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	want := asked
	if os.Geteuid() == 0 {
		want = elsewhere(asked)
		require.Regexp(t, `^/var/tmp/caskeleton-[0-9a-f]{16}$`, want)
		require.Contains(t, log.String(), "data_dir="+want)
	}
	require.Equal(t, want, srv.DataDir())
	again := mustStart(t, Options{DataDir: asked})
	require.Equal(t, srv.PID(), again.PID())
	require.NoError(t, Stop(testContext(t), asked))
	require.True(t, portFree(srv.Port()))
}

func TestUntrustedDirectories(t *testing.T) {
	dir := newDir(t)
	for name, prepare := range map[string]func(path string) error{
		"others may write to it": func(p string) error {
			return join(os.Mkdir(p, 0o700), os.Chmod(p, 0o777))
		},
		"it is a link or a file": func(p string) error { return os.Symlink(dir, p) },
		"it is owned by uid": func(p string) error {
			if os.Geteuid() != 0 {
				return os.Symlink("/", p) // nobody else can give a directory away
			}
			return join(os.Mkdir(p, 0o700), os.Chown(p, 12345, 12345))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(newDir(t), "x")
			require.NoError(t, prepare(path))
			err := trust(path, account{uid: os.Geteuid()})
			require.ErrorIs(t, err, ErrUntrusted)
			if os.Geteuid() == 0 {
				require.ErrorContains(t, err, name)
			}
			require.ErrorIs(t, makeCache(path), ErrUntrusted)
			_, err = openArea(t.Context(), path, account{uid: os.Geteuid()})
			require.ErrorIs(t, err, ErrUntrusted)
		})
	}
	require.NoError(t, trust(dir, account{uid: os.Geteuid()}))
}

func join(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestDataDirMayBeReachedByALink(t *testing.T) {
	dir := newDir(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o700))
	require.NoError(t, os.Chmod(filepath.Join(dir, "real"), 0o711))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
	srv := mustStart(t, Options{DataDir: filepath.Join(dir, "link")})
	again := mustStart(t, Options{DataDir: filepath.Join(dir, "real")})
	require.Equal(t, srv.PID(), again.PID())
}
