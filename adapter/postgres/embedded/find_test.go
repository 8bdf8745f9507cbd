package embedded

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeInstallation has programs that say a version and do nothing else.
func fakeInstallation(t *testing.T, version string) string {
	t.Helper()
	dir := newDir(t)
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
	for _, program := range []string{"postgres", "initdb"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755))
		require.NoError(t, os.Chmod(filepath.Join(dir, program), 0o755))
	}
	return dir
}

func finderWithoutNPM(t *testing.T, log *bytes.Buffer, system ...string) finder {
	t.Helper()
	acct, err := currentAccount()
	require.NoError(t, err)
	t.Setenv("PATH", t.TempDir()) // where npm is not
	return finder{acct: acct, logger: slog.New(slog.NewTextHandler(log, nil)), cache: newDir(t), system: system}
}

func TestFindFallsBackToTheNewestOfTheSystem(t *testing.T) {
	newest := fakeInstallation(t, "17.2 (Debian 17.2-1)")
	var log bytes.Buffer
	f := finderWithoutNPM(t, &log, fakeInstallation(t, "14.9"), fakeInstallation(t, "15.18"), newest, fakeInstallation(t, "16.1"), "/nonexistent")
	in, err := f.find(testContext(t))
	require.NoError(t, err)
	require.Equal(t, Installation{BinDir: newest, Version: "17.2", Major: 17}, in)
	require.Contains(t, log.String(), "version=17.2")
	require.Contains(t, log.String(), "npm is not in PATH")
}

func TestFindRunsARealPostgreSQLOfTheSystem(t *testing.T) {
	found, err := Find(testContext(t), nil)
	require.NoError(t, err)
	var log bytes.Buffer
	f := finderWithoutNPM(t, &log, found.BinDir)
	in, err := f.find(testContext(t))
	require.NoError(t, err)
	srv := mustStart(t, Options{DataDir: filepath.Join(newDir(t), "pg"), BinDir: in.BinDir})
	require.Equal(t, in.Version, srv.Version())
	require.Equal(t, in.BinDir, srv.BinDir())
}

func TestFindNothing(t *testing.T) {
	var log bytes.Buffer
	_, err := finderWithoutNPM(t, &log, fakeInstallation(t, "14.9")).find(testContext(t))
	require.ErrorIs(t, err, ErrNoPostgres)
	for _, part := range []string{"npm is not in PATH", "PostgreSQL 14.9, and 15 is the oldest supported", "Install npm", "apt-get install postgresql", "DATABASE_URL"} {
		require.ErrorContains(t, err, part)
	}
	_, err = finderWithoutNPM(t, &log).find(testContext(t))
	require.ErrorContains(t, err, "no PostgreSQL server programs in PATH")
}

func TestFindTheVersionAskedFor(t *testing.T) {
	asked := fakeInstallation(t, "17.2")
	f := finderWithoutNPM(t, &bytes.Buffer{}, fakeInstallation(t, "16.1"), asked, fakeInstallation(t, "18.1"))
	f.major = 17
	in, err := f.find(testContext(t))
	require.NoError(t, err)
	require.Equal(t, asked, in.BinDir)
	f.major = 15
	_, err = f.find(testContext(t))
	require.ErrorIs(t, err, ErrNoPostgres)
	require.ErrorContains(t, err, "PostgreSQL 18.1, and 15 is asked for")
}

func TestInspectRefusesWhatDoesNotRun(t *testing.T) {
	acct, err := currentAccount()
	require.NoError(t, err)
	dir := fakeInstallation(t, "")
	_, err = inspect(testContext(t), dir, acct)
	require.ErrorContains(t, err, "names no version")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "postgres"), []byte("#!/bin/sh\necho no libfoo >&2; exit 127\n"), 0o600))
	_, err = inspect(testContext(t), dir, acct)
	require.ErrorContains(t, err, "no libfoo")
}

func TestEveryPlatformIsPinned(t *testing.T) {
	seen := map[string]bool{}
	for _, goos := range []string{"linux", "darwin"} {
		for _, arch := range []string{"amd64", "arm64"} {
			for _, major := range []int{15, 16, 17, 18} {
				p, err := pinFor(major, goos, arch)
				require.NoError(t, err)
				require.Regexp(t, `^sha512-[A-Za-z0-9+/]{86}==$`, p.integrity)
				require.True(t, strings.HasPrefix(p.version, fmt.Sprint(major, ".")), p.version)
				require.False(t, seen[p.integrity] || seen[p.spec()])
				seen[p.integrity], seen[p.spec()] = true, true
			}
		}
	}
	_, err := pinFor(16, "plan9", "386")
	require.ErrorContains(t, err, "plan9/386")
	_, err = pinFor(14, "linux", "amd64")
	require.ErrorContains(t, err, "version 14")
}
