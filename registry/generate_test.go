package registry_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/registry"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	require.NoError(t, registry.Verify(".."))
}

// repository writes a root with the given registries and nothing generated.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(root, "registry"), files("", "")))
	return root
}

func TestWriteThenVerify(t *testing.T) {
	root := repository(t)
	written, err := registry.Write(root)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"fault/codes_gen.go", "bootstrap/config/keys_gen.go", "docs/reference/error-codes.md", "docs/reference/metrics.md", "docs/reference/configuration.md",
		"adapter/postgres/migrations/tables_gen.go",
	}, written)
	require.NoError(t, registry.Verify(root))

	again, err := registry.Write(root)
	require.NoError(t, err)
	require.Empty(t, again, "nothing changed, so nothing is written")
}

func TestVerifyNamesTheFileAndTheCommand(t *testing.T) {
	root := repository(t)
	_, err := registry.Write(root)
	require.NoError(t, err)
	page := filepath.Join(root, "docs", "reference", "metrics.md")
	require.NoError(t, os.WriteFile(page, []byte("by hand\n"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(root, "fault", "codes_gen.go")))

	err = registry.Verify(root)
	require.ErrorContains(t, err, "docs/reference/metrics.md differs")
	require.ErrorContains(t, err, "fault/codes_gen.go differs")
	require.ErrorContains(t, err, "make generate")
	require.NotContains(t, err.Error(), "error-codes.md")
	left, readErr := os.ReadFile(page)
	require.NoError(t, readErr)
	require.Equal(t, "by hand\n", string(left), "verify writes nothing")
}

func TestGeneratedGo(t *testing.T) {
	root := repository(t)
	code := "codes:\n  - {name: DB_TX_GONE, category: TRANSIENT_DEPENDENCY, status: 422, also_status: 400, retryable: true, client: Say \"it\"., hint: Look.}\n"
	key := "keys:\n  - {name: APP_MODE_<ROLE>, path: modes.<role>, type: enum, values: [a, b], secret: true, pattern: true, doc: Mode.}\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "registry", "error-codes.yaml"), []byte(code), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "registry", "env-keys.yaml"), []byte(key), 0o600))
	_, err := registry.Write(root)
	require.NoError(t, err)

	for path, want := range map[string]string{
		"fault/codes_gen.go": `// Code generated from registry/error-codes.yaml by make generate. DO NOT EDIT.

package fault

// The kit's codes. Each is described in docs/reference/error-codes.md.
var (
	DBTXGone = NewCode(Spec{Name: "DB_TX_GONE", Category: CategoryTransientDependency, Status: 422, AlsoStatus: 400, Retryable: true, Client: "Say \"it\".", Hint: "Look."})
)
`,
		"adapter/postgres/migrations/tables_gen.go": `// Code generated from registry/tables.yaml by make generate. DO NOT EDIT.

package migrations

// tables is every table of the kit and what the runtime role may do with it; nothing changes it.
var tables = []table{
	{name: "a_b", stream: "core", grants: []string{"select", "update (c)"}},
}
`,
		"bootstrap/config/keys_gen.go": `// Code generated from registry/env-keys.yaml by make generate. DO NOT EDIT.

package config

// keys is every setting, in the order of docs/reference/configuration.md; nothing changes it.
var keys = []Key{
	{Env: "APP_MODE_<ROLE>", Path: "modes.<role>", Type: "enum", Values: []string{"a", "b"}, Secret: true, Pattern: true, Doc: "Mode."},
}
`,
	} {
		have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(want, string(have)), path)
	}
}

func TestReferencePageEscapesBars(t *testing.T) {
	root := repository(t)
	metric := "metrics:\n  - {name: a.b, type: counter, unit: \"{claim}\", labels: [outcome], doc: One of a|b.}\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "registry", "metrics.yaml"), []byte(metric), 0o600))
	_, err := registry.Write(root)
	require.NoError(t, err)
	have, err := os.ReadFile(filepath.Join(root, "docs", "reference", "metrics.md"))
	require.NoError(t, err)
	require.Contains(t, string(have), "| `a.b` | counter | `{claim}` | `outcome` | One of a\\|b. |\n")
}
