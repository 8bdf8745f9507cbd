package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "caskeleton.dev"

// source is one file of the repository, of its nested modules too.
type source struct {
	path string // from the repository's root, with slashes
	text string
}

func (s source) dir() string  { return path.Dir(s.path) }
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }
func (s source) generated() bool {
	return ast.IsGenerated(s.parse(parser.PackageClauseOnly | parser.ParseComments))
}

// parse panics on a syntax error: the compiler has reported it better already.
func (s source) parse(mode parser.Mode) *ast.File {
	f, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, mode)
	if err != nil {
		panic(err)
	}
	return f
}

// position turns a place in s into file:line.
func (s source) position(p token.Pos) string {
	return s.path + ":" + strconv.Itoa(strings.Count(s.text[:int(p)-1], "\n")+1)
}

// tree reads every file with one of the extensions in this process, since go test's cache sees only what the test itself opens.
// Hidden directories, testdata and node_modules hold nothing of ours.
func tree(t *testing.T, extensions ...string) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var files []source
	require.NoError(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		n := d.Name()
		if d.IsDir() {
			if p != root && (strings.HasPrefix(n, ".") || n == "testdata" || n == "node_modules" || n == "build") {
				return filepath.SkipDir
			}
			return nil
		}
		for _, e := range extensions {
			if strings.HasSuffix(n, e) {
				text, err := os.ReadFile(p)
				if err != nil {
					return err
				}
				rel, err := filepath.Rel(root, p)
				files = append(files, source{filepath.ToSlash(rel), string(text)})
				return err
			}
		}
		return nil
	}))
	return files
}

// nested returns the directories of the modules other than the main one.
func nested(t *testing.T) map[string]bool {
	t.Helper()
	dirs := map[string]bool{}
	for _, f := range tree(t, "go.mod") {
		if f.dir() != "." {
			dirs[f.dir()] = true
		}
	}
	return dirs
}

func inside(dir string, dirs map[string]bool) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if dirs[dir] {
			return true
		}
	}
	return false
}
