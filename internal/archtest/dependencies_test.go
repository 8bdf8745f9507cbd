package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// direct returns the modules that a go.mod, as `go mod tidy` writes it, requires directly.
func direct(mod string) []string {
	var modules []string
	inBlock := false
	for line := range strings.Lines(mod) {
		line = strings.TrimSpace(line)
		if line == "require (" || line == ")" {
			inBlock = line != ")"
			continue
		}
		rest, single := strings.CutPrefix(line, "require ")
		if fields := strings.Fields(rest); (inBlock || single) && len(fields) >= 2 && !strings.HasSuffix(line, "// indirect") {
			modules = append(modules, fields[0])
		}
	}
	return modules
}

var dependencyRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*) \\|$")

func TestDependenciesHaveAReason(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		require.NoError(t, err)
		return string(text)
	}
	const page = "docs/dependencies.md"
	listed := map[string]bool{}
	for _, row := range dependencyRow.FindAllStringSubmatch(read(page), -1) {
		if strings.TrimSpace(row[2]) == "" {
			t.Errorf("%s: %s has no reason: whoever imports us takes it too, so say why it is worth it", page, row[1])
		}
		listed[row[1]] = true
	}
	required := map[string]bool{}
	for _, m := range direct(read("go.mod")) {
		required[m] = true
		if !listed[m] {
			t.Errorf("go.mod requires %s, which %s does not list: whoever imports us takes it too; add a row with the reason", m, page)
		}
	}
	for m := range listed {
		if !required[m] {
			t.Errorf("%s lists %s, which go.mod does not require directly; delete the row", page, m)
		}
	}
}

func TestDirect(t *testing.T) {
	const mod = "module m\n\ngo 1.26\n\nrequire a.b/c v1.0.0\n\nrequire (\n\td.e/f v1.0.0\n\tg.h/i v1.0.0 // indirect\n)\n\ntool (\n\tj.k/l\n)\n"
	require.Equal(t, []string{"a.b/c", "d.e/f"}, direct(mod))
}
