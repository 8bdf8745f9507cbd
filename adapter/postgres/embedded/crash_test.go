package embedded

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServerOutlivesKilledParent(t *testing.T) {
	dir := filepath.Join(newDir(t), "pg")
	stopAfter(t, dir)
	child, line := startChild(t, dir)
	pid := pidOf(t, line())
	killGroup(child)

	srv := mustStart(t, Options{DataDir: dir})
	require.Equal(t, pid, srv.PID(), "the server of the killed process must be attached to")
	require.Equal(t, "1", ask(t, srv.DSN(), `SELECT '1'`))
}

func TestConcurrentStarts(t *testing.T) {
	dir := filepath.Join(newDir(t), "pg")
	stopAfter(t, dir)
	var lines []func() string
	for range 4 {
		_, line := startChild(t, dir)
		lines = append(lines, line)
	}
	pid := pidOf(t, lines[0]())
	for _, line := range lines[1:] {
		require.Equal(t, pid, pidOf(t, line()), "one starts, the others attach")
	}
}

func TestCrashedServerRecovers(t *testing.T) {
	dir := filepath.Join(newDir(t), "pg")
	for name, crash := range map[string]func(*Server) error{
		"kill":      func(s *Server) error { return s.Kill(testContext(t)) },
		"immediate": func(s *Server) error { return s.StopImmediate(testContext(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := mustStart(t, Options{DataDir: dir})
			oid := ask(t, srv.DSN(), `SELECT lo_from_bytea(0, 'kept')::text`)
			require.NoError(t, crash(srv))
			again := mustStart(t, Options{DataDir: dir})
			require.NotEqual(t, srv.PID(), again.PID())
			require.Equal(t, srv.DSN(), again.DSN())
			require.Equal(t, "kept", ask(t, again.DSN(), `SELECT convert_from(lo_get(`+oid+`), 'UTF8')`))
			log, err := os.ReadFile(filepath.Join(dir, "server.log"))
			require.NoError(t, err)
			require.Contains(t, string(log), "database system was not properly shut down", "the crash was none")
		})
	}
}

func TestRecycledPIDIsNotTakenForTheServer(t *testing.T) {
	ctx := testContext(t)
	dir := filepath.Join(newDir(t), "pg")
	srv := mustStart(t, Options{DataDir: dir})
	file := filepath.Join(dir, "data", "postmaster.pid")
	left, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, srv.Stop(ctx))

	// A process of PostgreSQL's own user now has the pid that the server left behind.
	bystander := srv.acct.command(ctx, "/", "/bin/cat")
	in, err := bystander.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, bystander.Start())
	pid := strconv.Itoa(bystander.Process.Pid)
	left = []byte(strings.Replace(string(left), strconv.Itoa(srv.PID())+"\n", pid+"\n", 1))
	require.True(t, strings.HasPrefix(string(left), pid))
	require.NoError(t, os.WriteFile(file, left, 0o600))
	if srv.acct.drop {
		require.NoError(t, os.Chown(file, srv.acct.uid, srv.acct.gid))
	}

	again := mustStart(t, Options{DataDir: dir})
	require.NotEqual(t, bystander.Process.Pid, again.PID())
	require.NoError(t, Stop(ctx, dir))
	require.False(t, portTaken(again.Port()))

	require.NoError(t, os.WriteFile(file, left, 0o600))
	require.NoError(t, Stop(ctx, dir), "nothing runs here")
	require.True(t, alive(bystander.Process.Pid), "stop signalled a process that is none of its own")
	require.NoError(t, in.Close())
	require.NoError(t, bystander.Wait())
}

func TestStopWhereNothingRuns(t *testing.T) {
	dir := filepath.Join(newDir(t), "pg")
	require.NoError(t, Stop(testContext(t), dir))
	require.NoDirExists(t, dir)
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, Stop(testContext(t), dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestStopSharedEndsTheServersOfTests(t *testing.T) {
	cache := newDir(t)
	srv := mustStart(t, Options{DataDir: filepath.Join(cache, "pgtest-16")})
	stopped, err := stopShared(testContext(t), filepath.Join(cache, sharedPrefix))
	require.NoError(t, err)
	require.Equal(t, []string{srv.DataDir()}, stopped)
	require.True(t, portFree(srv.Port()))
}

func TestTheSharedServerIsWhereStopSharedLooks(t *testing.T) {
	dir, err := SharedDataDir(16)
	require.NoError(t, err)
	cache, err := CacheDir()
	require.NoError(t, err)
	require.Contains(t, []string{filepath.Join(cache, sharedPrefix) + "16", inMemory() + "16"}, dir)
}

func TestTheSharedServerStaysWhereItIs(t *testing.T) {
	there := t.TempDir()
	require.True(t, roomFor(there), "it holds what fills the memory")
	require.False(t, roomFor(filepath.Join(there, "no", "such", "file system")))
}

// A server started by hand on the same cluster holds no lock of ours: PostgreSQL itself must refuse the second one.
func TestClusterIsNeverServedTwice(t *testing.T) {
	ctx := testContext(t)
	dir := filepath.Join(newDir(t), "pg")
	srv := mustStart(t, Options{DataDir: dir})
	require.NoError(t, srv.Stop(ctx))
	byHand := srv.acct.command(ctx, "/", filepath.Join(srv.BinDir(), "pg_ctl"), "-D", filepath.Join(dir, "data"), "-w",
		"-o", "-p "+strconv.Itoa(srv.Port())+" -k ''", "-l", filepath.Join(dir, "data", "by-hand.log"), "start")
	require.NoError(t, byHand.Run())
	defer func() {
		stop := srv.acct.command(ctx, "/", byHand.Path, "-D", filepath.Join(dir, "data"), "-m", "immediate", "stop")
		require.NoError(t, stop.Run())
	}()
	_, err := Start(ctx, Options{DataDir: dir, FsyncOff: true})
	require.ErrorContains(t, err, "still in use")
	require.Equal(t, "1", ask(t, srv.DSN(), `SELECT '1'`))
	var exit *exec.ExitError
	require.NotErrorAs(t, err, &exit)
}
