package testprog

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeApt answers as apt-get does, and counts its calls of each kind in dir. The packages it hands out are files; fakeDpkg "unpacks" them.
const fakeApt = `#!/bin/sh
for a in "$@"; do case $a in
update) echo update >>DIR/calls;;
install) echo "Inst libneeded (1.0 Debian:12 [amd64])"; echo "Inst prog (2.0 Debian:12 [amd64])"; echo "Conf prog (2.0)";;
download) echo download >>DIR/calls; take=yes;;
*) [ -z "$take" ] || : >"$a.deb";;
esac; done
`

const fakeDpkg = `#!/bin/sh
mkdir -p "$3/usr/bin" "$3/usr/lib/x86_64-linux-gnu"
: >"$3/usr/lib/x86_64-linux-gnu/$(basename "$2" .deb).so"
printf '#!/bin/sh\n[ ! -e DIR/broken ]\n' >"$3/usr/bin/prog"
chmod +x "$3/usr/bin/prog"
`

func fakes(t *testing.T) (f finder, dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"apt-get": fakeApt, "dpkg-deb": fakeDpkg} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o755))
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	return finder{cache: filepath.Join(dir), apt: "apt-get"}, dir
}

func calls(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "calls"))
	require.NoError(t, err)
	return string(b)
}

func TestAProgramIsFetchedOnceHoweverManyWantIt(t *testing.T) {
	f, dir := fakes(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p, err := f.find(t.Context(), "prog", "prog")
			if err != nil {
				t.Error(err)
				return
			}
			if p.Path != filepath.Join(dir, "apt-prog/usr/bin/prog") {
				t.Errorf("found %s", p.Path)
			}
		})
	}
	wg.Wait()
	require.Equal(t, "update\ndownload\n", calls(t, dir))
	require.FileExists(t, filepath.Join(dir, "apt-prog/usr/lib/x86_64-linux-gnu/libneeded.so"), "what the package depends on comes along")
	require.NoDirExists(t, filepath.Join(dir, "apt-prog.fetching"))
}

func TestAnUnpackedProgramFindsItsLibraries(t *testing.T) {
	f, dir := fakes(t)
	p, err := f.find(t.Context(), "prog", "prog")
	require.NoError(t, err)
	require.Contains(t, p.Command(t.Context()).Env, "LD_LIBRARY_PATH="+filepath.Join(dir, "apt-prog/usr/lib/x86_64-linux-gnu"))
}

func TestACopyThatDoesNotRunIsFetchedAgain(t *testing.T) {
	f, dir := fakes(t)
	broken := filepath.Join(dir, "broken")
	require.NoError(t, os.WriteFile(broken, nil, 0o600))
	_, err := f.find(t.Context(), "prog", "prog")
	require.ErrorContains(t, err, "prog --version")
	require.NoError(t, os.Remove(broken))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "apt-prog.fetching/tree"), 0o700), "a killed process left its half")
	require.NoError(t, os.Remove(filepath.Join(dir, "apt-prog/usr/bin/prog")))
	_, err = f.find(t.Context(), "prog", "prog")
	require.NoError(t, err)
	require.Equal(t, "update\ndownload\nupdate\ndownload\n", calls(t, dir))
}

func TestPathComesFirst(t *testing.T) {
	p, err := Find(t.Context(), "sh", "dash")
	require.NoError(t, err)
	require.Equal(t, "sh", filepath.Base(p.Path))
	require.Empty(t, p.libs)
}

func TestWithoutAptTheErrorSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Find(t.Context(), "redis-server", "redis-tools")
	require.ErrorContains(t, err, "need redis-server")
	require.ErrorContains(t, err, "on Debian and Ubuntu: redis-tools")
	require.ErrorContains(t, err, "apt-get is not in PATH")
}
