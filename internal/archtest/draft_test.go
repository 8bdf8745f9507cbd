package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/registry"
)

var (
	testName = regexp.MustCompile("`(Test\\w+)`")
	testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

// unproved returns what is wrong with the rows of a page about a draft: those without a test, and names of tests that there are not.
func unproved(page string, tests map[string]bool) (problems []string) {
	rows := 0
	for line := range strings.Lines(page) {
		if section := regexp.MustCompile(`^\| (\d[\d.]*) \|`).FindStringSubmatch(line); section != nil {
			rows++
			if !testName.MatchString(line) {
				problems = append(problems, "section "+section[1]+" has a row without a test: "+strings.TrimSpace(line))
			}
		}
		for _, name := range testName.FindAllStringSubmatch(line, -1) {
			if !tests[name[1]] {
				problems = append(problems, "there is no "+name[1])
			}
		}
	}
	if rows == 0 {
		problems = append(problems, "there is no row")
	}
	return problems
}

func TestTheDraftsRequirementsAreProved(t *testing.T) {
	tests := map[string]bool{}
	for _, f := range tree(t, "_test.go") {
		for _, name := range testFunc.FindAllStringSubmatch(f.text, -1) {
			tests[name[1]] = true
		}
	}
	const page = "docs/idempotency-key-draft.md"
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
	require.NoError(t, err)
	for _, problem := range unproved(string(text), tests) {
		t.Errorf("%s: %s; whoever reads it takes our word for it", page, problem)
	}
}

func TestUnproved(t *testing.T) {
	tests := map[string]bool{"TestA": true}
	require.Empty(t, unproved("| 2.1 | x | y | `TestA` |\n", tests))
	require.Equal(t, []string{"section 2.1 has a row without a test: | 2.1 | x | y |  |"}, unproved("| 2.1 | x | y |  |\n", tests))
	require.Equal(t, []string{"there is no TestB"}, unproved("| 2.1 | x | y | `TestA` `TestB` |\n", tests))
	require.Equal(t, []string{"there is no row"}, unproved("text\n", tests))
}

// A page for clients is a promise: its numbers and codes are those of the code.
func TestWhatClientsAreToldOfKeysIsTrue(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		require.NoError(t, err)
		return string(text)
	}
	page := read("docs/reference/idempotency-keys.md")
	r, err := registry.Load(os.DirFS("../../registry"))
	require.NoError(t, err)
	expiry := ""
	for _, k := range r.Keys {
		if k.Name == "APP_IDEMPOTENCY_EXPIRY" {
			expiry = k.Default
		}
	}
	require.NotEmpty(t, expiry)
	require.Contains(t, page, "`APP_IDEMPOTENCY_EXPIRY` (`"+expiry+"` unless it is set)")
	require.Contains(t, read("idempotency/key.go"), "maxClientKey = 255\n")
	require.Contains(t, page, "1 to 255 visible ASCII")
	require.Contains(t, read("adapter/httpapi/policy.go"), "defaultMaxBody     = 1 << 20\n")
	require.Contains(t, page, "1 MiB unless the route says otherwise")
	told := 0
	for _, c := range r.Codes {
		if strings.HasPrefix(c.Name, "IDEMPOTENCY_") {
			told++
			require.Contains(t, page, fmt.Sprintf("\n| %d `%s` |", c.Status, c.Name))
		}
	}
	require.Equal(t, 5, told)
}
