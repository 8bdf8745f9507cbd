package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/embedded"
)

// Standby starts a hot standby that streams from the primary, and waits until it does. It ends with the test, as a [PrivateServer] does. The
// primary, which goes on meanwhile, must be one that the test started. settings are added to those of every server of this package.
func Standby(tb testing.TB, primary *embedded.Server, settings map[string]string) *embedded.Server {
	tb.Helper()
	dir, err := os.MkdirTemp("", privatePrefix) //nolint:usetesting // TempDir is closed to PostgreSQL's user under root
	require.NoError(tb, err)
	require.NoError(tb, os.Chmod(dir, 0o711)) //nolint:gosec // PostgreSQL's user has to pass through
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(tb, copyCluster(tb.Context(), primary, dir))
	standby := PrivateServer(tb, &embedded.Options{DataDir: dir, BinDir: primary.BinDir(), FsyncOff: true, Settings: settings})
	conn := Connect(tb, standby.DSN())
	require.Eventually(tb, func() bool {
		var streams bool
		err := conn.QueryRow(tb.Context(), `SELECT exists (SELECT FROM pg_catalog.pg_stat_wal_receiver WHERE status = 'streaming')`).Scan(&streams)
		return err == nil && streams
	}, 30*time.Second, 20*time.Millisecond, "the standby does not stream")
	return standby
}

// copyCluster makes dir the area of a standby: a base backup, taken without the program for it, which the npm package lacks.
func copyCluster(ctx context.Context, primary *embedded.Server, dir string) error {
	conn, err := pgx.Connect(ctx, primary.DSN())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	b := backup{}
	if b.from, err = os.OpenRoot(primary.DataDir()); err != nil {
		return err
	}
	defer b.from.Close()
	if b.to, err = os.OpenRoot(dir); err != nil {
		return err
	}
	defer b.to.Close()

	password, err := b.from.ReadFile("password")
	if err != nil {
		return err
	}
	if err := b.to.WriteFile("password", password, 0o600); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `SELECT pg_catalog.pg_backup_start('standby', true)`); err != nil {
		return err
	}
	if err := fs.WalkDir(b.from.FS(), "data", b.copy); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, `SELECT labelfile FROM pg_catalog.pg_backup_stop(false)`).Scan(&label); err != nil {
		return err
	}
	auto, err := b.to.ReadFile("data/postgresql.auto.conf")
	if err != nil {
		return err
	}
	c := conn.Config()
	auto = fmt.Appendf(auto, "\nprimary_conninfo = 'host=%s port=%d user=%s password=%s'\n", c.Host, c.Port, c.User, c.Password)
	return errors.Join(b.write("data/postgresql.auto.conf", auto), b.write("data/backup_label", []byte(label)), b.write("data/standby.signal", nil))
}

// backup copies a running server's files.
type backup struct{ from, to *os.Root }

// copy takes what is there but the pid and the WAL, which the standby gets by streaming. Files may end meanwhile.
func (b backup) copy(path string, d fs.DirEntry, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case d.IsDir():
		return errors.Join(b.to.Mkdir(path, 0o700), b.own(path))
	case strings.HasPrefix(d.Name(), "postmaster."), strings.HasPrefix(path, "data/pg_wal/"):
		return nil
	}
	body, err := b.from.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, b.write(path, body))
}

func (b backup) write(path string, body []byte) error {
	return errors.Join(b.to.WriteFile(path, body, 0o600), b.own(path))
}

// own gives what was copied the owner of the original's directory: the user that PostgreSQL runs as.
func (b backup) own(path string) error {
	info, err := b.from.Stat("data")
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("pgtest: the owner of a file cannot be told on this system")
	}
	return b.to.Lchown(path, int(st.Uid), int(st.Gid))
}
