package embedded

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func TestStartAttachStop(t *testing.T) {
	ctx := testContext(t)
	dir := filepath.Join(newDir(t), "pg")
	stopAfter(t, dir)
	var log bytes.Buffer
	o := Options{DataDir: dir, Database: "orders", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	first, err := Start(ctx, o)
	require.NoError(t, err)

	require.Equal(t, "on", ask(t, first.DSN(), `SHOW fsync`))
	require.Equal(t, "127.0.0.1", ask(t, first.DSN(), `SHOW listen_addresses`))
	require.Equal(t, "UTC", ask(t, first.DSN(), `SHOW timezone`))
	require.Equal(t, "UTF8", ask(t, first.DSN(), `SHOW server_encoding`))
	require.Equal(t, "orders", ask(t, first.DSN(), `SELECT current_database()::text`))
	require.Equal(t, "on", ask(t, first.DSN(), `SELECT current_setting('is_superuser')`))
	require.Equal(t, first.Version(), ask(t, first.DSN(), `SELECT split_part(current_setting('server_version'), ' ', 1)`))
	require.FileExists(t, filepath.Join(first.BinDir(), "initdb"))
	ask(t, first.DSN(), `SELECT lo_from_bytea(4711, 'kept')::text`)

	second, err := Start(ctx, o)
	require.NoError(t, err)
	require.Equal(t, first.PID(), second.PID(), "a second start must attach")
	require.Equal(t, first.DSN(), second.DSN())
	require.Contains(t, log.String(), "attached to PostgreSQL")

	require.NoError(t, second.Stop(ctx))
	require.False(t, portTaken(first.Port()))
	require.NoError(t, second.Stop(ctx), "stopping twice is no error")

	third, err := Start(ctx, o)
	require.NoError(t, err)
	require.Equal(t, first.DSN(), third.DSN(), "port and password survive a restart")
	require.NotEqual(t, first.PID(), third.PID())
	require.Equal(t, "kept", ask(t, third.DSN(), `SELECT convert_from(lo_get(4711), 'UTF8')`))
	require.FileExists(t, filepath.Join(dir, "server.log.1"))
	require.NoError(t, Stop(ctx, dir))
	require.False(t, portTaken(first.Port()))

	for _, s := range []string{log.String(), fmt.Sprintf("%v %+v %#v %s", first, first, first, first)} {
		require.NotContains(t, s, first.password)
	}
	info, err := os.Stat(filepath.Join(dir, "password"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func portTaken(port int) bool { return !portFree(port) }

func TestPasswordIsAsked(t *testing.T) {
	srv := mustStart(t, Options{DataDir: filepath.Join(newDir(t), "pg")})
	for _, password := range []string{"", "guess"} {
		cfg, err := pgx.ParseConfig(srv.DSN())
		require.NoError(t, err)
		cfg.Password = password
		_, err = pgx.ConnectConfig(t.Context(), cfg)
		var pg *pgconn.PgError
		require.ErrorAs(t, err, &pg)
		require.Equal(t, "28P01", pg.Code)
	}

	require.NoError(t, os.WriteFile(filepath.Join(srv.DataDir(), "password"), []byte("not-the-secret"), 0o600))
	_, err := Start(testContext(t), Options{DataDir: srv.DataDir()})
	require.ErrorContains(t, err, "refuses the password")
	require.NotContains(t, err.Error(), "not-the-secret")
}

func TestPort(t *testing.T) {
	ctx := testContext(t)
	dir := filepath.Join(newDir(t), "pg")
	srv := mustStart(t, Options{DataDir: dir})
	_, err := Start(ctx, Options{DataDir: dir, Port: srv.Port() - 1})
	require.ErrorContains(t, err, "already listens on port "+strconv.Itoa(srv.Port()))
	require.NoError(t, srv.Stop(ctx))

	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", srv.Port()))
	require.NoError(t, err)
	defer l.Close()
	_, err = Start(ctx, Options{DataDir: dir, Port: srv.Port()})
	require.ErrorContains(t, err, "in use")
	again := mustStart(t, Options{DataDir: dir})
	require.NotEqual(t, srv.Port(), again.Port(), "another process has the port of the last time")
	require.Equal(t, "caskeleton", ask(t, again.DSN(), `SELECT current_database()::text`))
}

func TestStartSaysWhatPostgreSQLSaid(t *testing.T) {
	dir := filepath.Join(newDir(t), "pg")
	stopAfter(t, dir)
	_, err := Start(testContext(t), Options{DataDir: dir, FsyncOff: true, Settings: map[string]string{"shared_buffers": "plenty"}})
	require.ErrorContains(t, err, `invalid value for parameter "shared_buffers": "plenty"`)
	srv := mustStart(t, Options{DataDir: dir, Settings: map[string]string{"max_connections": "17"}})
	require.Equal(t, "17", ask(t, srv.DSN(), `SHOW max_connections`))
	require.Equal(t, "off", ask(t, srv.DSN(), `SHOW fsync`))
}

func TestInterruptedInitdbIsBegunAnew(t *testing.T) {
	dir := filepath.Join(newDir(t), "pg")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data.new", "base"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data.new", "PG_VERSION"), []byte("16\n"), 0o600))
	require.NoError(t, os.Chmod(dir, 0o711))
	srv := mustStart(t, Options{DataDir: dir})
	require.Equal(t, "1", ask(t, srv.DSN(), `SELECT '1'`))
	require.NoDirExists(t, filepath.Join(dir, "data.new"))
	require.NoFileExists(t, filepath.Join(dir, "initdb-password"))
}

func TestDataOfAnotherVersion(t *testing.T) {
	dir := filepath.Join(newDir(t), "pg")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "data"), 0o700))
	require.NoError(t, os.Chmod(dir, 0o711))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("12\n"), 0o600))
	in, err := Find(testContext(t), nil)
	require.NoError(t, err)
	_, err = Start(testContext(t), Options{DataDir: dir})
	require.ErrorIs(t, err, ErrDataVersion)
	require.ErrorContains(t, err, "was made by PostgreSQL 12, and the one to run is "+in.Version)
	require.ErrorContains(t, err, "remove "+dir)
}

func TestWaitsAreBoundedByTheContext(t *testing.T) {
	acct, err := currentAccount()
	require.NoError(t, err)
	dir := filepath.Join(newDir(t), "pg")
	a, err := makeArea(testContext(t), dir, acct)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 3*pollEvery)
	defer cancel()
	_, err = Start(ctx, Options{DataDir: dir})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "another process")
	a.close()

	// What holds this lock and never becomes ready is like a server that recovers for long.
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	running, err := lock(testContext(t), root, runningFile)
	require.NoError(t, err)
	defer running.Close()
	ctx, cancel = context.WithTimeout(t.Context(), 3*pollEvery)
	defer cancel()
	_, err = Start(ctx, Options{DataDir: dir})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "server.log")
	require.ErrorIs(t, Stop(ctx, dir), context.DeadlineExceeded)
}

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]Options{
		"DataDir is required":     {},
		"Port 70000":              {DataDir: "x", Port: 70000},
		"Database":                {DataDir: "x", Database: "a\x00b"},
		`Settings has "fsync; x"`: {DataDir: "x", Settings: map[string]string{"fsync; x": "on"}},
	} {
		_, err := Start(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
	require.NoDirExists(t, "x")
}
