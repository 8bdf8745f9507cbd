package archtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// People, the documentation and CI call these by name.
func TestTheMakeTargetsAreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	require.NoError(t, err)
	for _, target := range []string{"help", "run", "stop", "test", "test-all", "stop-tests", "check", "generate", "verify", "lint", "vet", "vuln", "fuzz", "bench"} {
		require.Regexp(t, `(?m)^`+target+`:.* ## .+`, string(text), "make %s is missing, or says nothing in make help", target)
	}
	require.Regexp(t, `(?m)^check: lint verify vet test `, string(text), "make check is what a change must pass: lint, generated files, vet and tests")
	require.NotRegexp(t, `@latest|@master|@main`, string(text), "a tool without a version makes yesterday's commit fail today")
}

func TestCIRunsWhatPeopleRun(t *testing.T) {
	path := filepath.Join("..", "..", ".ci", "run")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o100, ".ci/run has no run bit")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, target := range []string{"check", "test-all", "vuln"} {
		require.Regexp(t, `(?m)^for target in .*\b`+target+`\b`, string(text), ".ci/run does not run make %s", target)
	}
}
