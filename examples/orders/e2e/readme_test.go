package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheTourOfTheREADMECompiles: what the README shows is a part of testdata/tour, letter for letter, and that builds.
func TestTheTourOfTheREADMECompiles(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(readme), "```go\n")
	require.True(t, ok)
	tour, _, ok := strings.Cut(after, "```")
	require.True(t, ok)
	program, err := os.ReadFile("testdata/tour/main.go")
	require.NoError(t, err)
	require.Contains(t, string(program), tour, "change both")

	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(t.TempDir(), "tour"), "./testdata/tour").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
