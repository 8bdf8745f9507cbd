package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunWritesAndVerifies(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"error-codes.yaml", "metrics.yaml", "env-keys.yaml", "tables.yaml"} {
		src, err := os.ReadFile(filepath.Join("..", "..", name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(root, "registry"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, "registry", name), src, 0o600))
	}
	var out bytes.Buffer
	require.ErrorContains(t, run(&out, root, true), "fault/codes_gen.go", "nothing is generated yet")
	require.NoDirExists(t, filepath.Join(root, "fault"), "verify writes nothing")

	require.NoError(t, run(&out, root, false))
	require.Contains(t, out.String(), "wrote docs/reference/error-codes.md\n")
	require.FileExists(t, filepath.Join(root, "fault", "codes_gen.go"))
	require.NoError(t, run(&out, root, true))
}
