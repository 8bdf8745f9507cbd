package registry_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/registry"
)

const (
	goodCode   = "codes:\n  - {name: DB_GONE, category: INTERNAL, status: 500, retryable: true, client: Sorry., hint: Look.}\n"
	goodMetric = "metrics:\n  - {name: db.pool.acquire, type: histogram, unit: s, labels: [state], doc: Waits.}\n"
	goodTable  = "tables:\n  - {name: a_b, stream: core, owner: x/y, access: {x/y: [select]}, grants: [select, update (c)]}\n"
	goodKey    = "keys:\n  - {name: APP_DB_MAX_CONNS, path: db.max_conns, type: int, default: \"10\", doc: Connections.}\n"
)

// files is a good set of registries in which one may be replaced.
func files(name, content string) fstest.MapFS {
	fsys := fstest.MapFS{
		"error-codes.yaml": {Data: []byte(goodCode)}, "metrics.yaml": {Data: []byte(goodMetric)}, "env-keys.yaml": {Data: []byte(goodKey)},
		"tables.yaml": {Data: []byte(goodTable)},
	}
	if name != "" {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}

func TestLoadReadsWhatIsThere(t *testing.T) {
	r, err := registry.Load(files("", ""))
	require.NoError(t, err)
	yes := true
	require.Equal(t, []registry.Code{{Name: "DB_GONE", Category: "INTERNAL", Status: 500, Retryable: &yes, Client: "Sorry.", Hint: "Look."}}, r.Codes)
	require.Equal(t, []registry.Metric{{Name: "db.pool.acquire", Type: "histogram", Unit: "s", Labels: []string{"state"}, Doc: "Waits."}}, r.Metrics)
	require.Equal(t, []registry.Table{{
		Name: "a_b", Stream: "core", Owner: "x/y", Access: map[string][]string{"x/y": {"select"}}, Grants: []string{"select", "update (c)"},
	}}, r.Tables)
	require.Equal(t, []registry.EnvKey{{Name: "APP_DB_MAX_CONNS", Path: "db.max_conns", Type: "int", Default: "10", Doc: "Connections."}}, r.Keys)
}

// Each fixture in testdata/bad is a registry with one fault; its first line says what the error must hold.
func TestLoadRefuses(t *testing.T) {
	fixtures, err := filepath.Glob(filepath.Join("testdata", "bad", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, fixtures)
	for _, path := range fixtures {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			src, err := os.ReadFile(path)
			require.NoError(t, err)
			head, _, _ := strings.Cut(string(src), "\n")
			want, ok := strings.CutPrefix(head, "# want: ")
			require.True(t, ok, "%s has no want line", path)
			prefix, _, _ := strings.Cut(filepath.Base(path), "_")
			name := map[string]string{"codes": "error-codes.yaml", "metrics": "metrics.yaml", "keys": "env-keys.yaml", "tables": "tables.yaml"}[prefix]
			require.NotEmpty(t, name, "%s must start with codes_, metrics_, keys_ or tables_", path)

			_, err = registry.Load(files(name, string(src)))
			require.ErrorContains(t, err, name)
			require.ErrorContains(t, err, want)
		})
	}
}

func TestLoadListsEveryProblemAtOnce(t *testing.T) {
	fsys := files("error-codes.yaml", strings.ReplaceAll(goodCode, "status: 500", "status: 200"))
	fsys["metrics.yaml"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(goodMetric, "doc: Waits.", `doc: ""`))}
	_, err := registry.Load(fsys)
	require.ErrorContains(t, err, "error-codes.yaml: DB_GONE: status 200")
	require.ErrorContains(t, err, "metrics.yaml: db.pool.acquire: doc is missing")
}

func TestLoadNeedsEveryFile(t *testing.T) {
	fsys := files("", "")
	delete(fsys, "metrics.yaml")
	_, err := registry.Load(fsys)
	require.ErrorContains(t, err, "metrics.yaml")
}

// The registry lists the categories itself, since it must build while fault does not.
func TestCategoriesAreThoseOfFault(t *testing.T) {
	require.Len(t, registry.Categories(), 10)
	for _, c := range registry.Categories() {
		require.True(t, fault.Category(c).Valid(), c)
	}
}

// The compiled package is asked, so that a wrong rendering is seen where comparing the file with itself would not.
func TestFaultSaysWhatTheRegistrySays(t *testing.T) {
	r, err := registry.Load(os.DirFS("."))
	require.NoError(t, err)
	i := slices.IndexFunc(r.Codes, func(c registry.Code) bool { return c.Name == "REQUEST_INVALID" })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, fault.RequestInvalid.Status(), r.Codes[i].Status)
	require.Equal(t, fault.RequestInvalid.ClientText(), r.Codes[i].Client)
	require.Equal(t, fault.RequestInvalid.Hint(), r.Codes[i].Hint)
}

// Clients and dashboards match on what a code was when they met it. A line is added with the release that brings its code, and never changed.
func TestReleasedCodesKeepTheirMeaning(t *testing.T) {
	r, err := registry.Load(os.DirFS("."))
	require.NoError(t, err)
	have := map[string]string{}
	for _, c := range r.Codes {
		status, retry := strconv.Itoa(c.Status), "final"
		if c.AlsoStatus != 0 {
			status += "/" + strconv.Itoa(c.AlsoStatus)
		}
		if *c.Retryable {
			retry = "retryable"
		}
		have[c.Name] = strings.Join([]string{c.Name, c.Category, status, retry}, " ")
	}
	released, err := os.ReadFile("testdata/codes.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(released)) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, " ")
		require.Equal(t, line, have[name], "testdata/codes.txt: %s means this to those who match on it; give the new meaning a new code", name)
	}
}
