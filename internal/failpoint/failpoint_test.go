package failpoint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/internal/failpoint"
)

// build compiles testdata/victim.
func build(t *testing.T, tags string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "victim")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-o", binary, "./testdata/victim").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}

func TestANormalBuildHasNoFailpoints(t *testing.T) {
	binary := build(t, "")
	symbols, err := exec.CommandContext(t.Context(), "go", "tool", "nm", binary).Output()
	require.NoError(t, err)
	require.NotContains(t, string(symbols), "failpoint.Hit")
	require.NotContains(t, string(symbols), "failpoint.armed")

	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Env = append(os.Environ(), "FAILPOINT="+string(failpoint.BeforeCommit)+":1")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, "survived\n", string(out))
}

func TestEachPointKillsAtItsCount(t *testing.T) {
	binary := build(t, "failpoints")
	symbols, err := exec.CommandContext(t.Context(), "go", "tool", "nm", binary).Output()
	require.NoError(t, err)
	require.Contains(t, string(symbols), "failpoint.armed")

	run := func(env string) (string, error) {
		cmd := exec.CommandContext(t.Context(), binary)
		cmd.Env = append(os.Environ(), "FAILPOINT="+env)
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	for _, p := range failpoint.Points() {
		_, err := run(string(p) + ":2")
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, p)
		status, ok := exit.Sys().(syscall.WaitStatus)
		require.True(t, ok)
		require.Equal(t, syscall.SIGKILL, status.Signal(), p)
	}
	for _, env := range []string{"before-commit", "before-commit:0", "before-commit:x", "nowhere:1"} {
		out, err := run(env)
		require.Error(t, err, env)
		require.Empty(t, out, env)
	}
	for _, env := range []string{"", "before-commit:3"} {
		out, err := run(env)
		require.NoError(t, err, env)
		require.Equal(t, "survived", out, env)
	}
}
