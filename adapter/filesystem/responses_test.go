package filesystem_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/filesystem"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/idempotency/idempotencytest"
)

func open(t *testing.T, dir string) *filesystem.Responses {
	t.Helper()
	r, err := filesystem.NewResponses(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func TestConformance(t *testing.T) {
	idempotencytest.TestResponseStore(t, idempotencytest.ResponseHarness{New: func(t *testing.T) idempotency.ResponseStore {
		t.Helper()
		return open(t, filepath.Join(t.TempDir(), "new", "dir"))
	}})
}

const ref = idempotency.Ref("00000000000000000000000000000000000000000000000000000000000000ff/OPERATION/RANDOM")

func TestAFileIsThereWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "00"), 0o700))
	old, recent := filepath.Join(dir, "00", ".put-OLD"), filepath.Join(dir, "00", ".put-NEW")
	for _, name := range []string{old, recent} { // by a crash
		require.NoError(t, os.WriteFile(name, []byte("half"), 0o600))
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	require.NoError(t, os.Chtimes(old, yesterday, yesterday))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README"), []byte("not ours"), 0o600))
	refs, err := r.List(t.Context(), "", 10)
	require.NoError(t, err)
	require.Empty(t, refs)
	require.NoFileExists(t, old)
	require.FileExists(t, recent)
	require.NoError(t, r.Put(t.Context(), ref, []byte("answer")))
	info, err := os.Stat(filepath.Join(dir, "00", "00000000000000000000000000000000000000000000000000000000000000ff.OPERATION.RANDOM"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "an answer is for nobody else to read")
}

func TestAnotherProcessReadsIt(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, open(t, dir).Put(t.Context(), ref, []byte("answer")))
	object, err := open(t, dir).Get(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, "answer", string(object))
}

func TestNoRefLeavesTheDirectory(t *testing.T) {
	r := open(t, t.TempDir())
	for _, bad := range []idempotency.Ref{"", "../../etc/passwd", ref[:64] + "/../x", ref[:64] + "/a/..", ref[:64] + "/a\x00/b", ref[:64] + "/a.b/c"} {
		require.Error(t, r.Put(t.Context(), bad, nil), "%q", bad)
		_, err := r.Get(t.Context(), bad)
		require.Error(t, err, "%q", bad)
		require.Error(t, r.Delete(t.Context(), bad), "%q", bad)
	}
}

func TestADirectoryThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := filesystem.NewResponses(file)
	require.Error(t, err)
}
