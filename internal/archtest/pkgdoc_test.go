package archtest

import (
	"fmt"
	"go/parser"
	"testing"

	"github.com/stretchr/testify/require"
)

// undocumented lists the packages without a package comment, or with two.
func undocumented(files []source) []string {
	comments := map[string]int{}
	for _, f := range files {
		if f.isTest() {
			continue
		}
		n := 0
		if f.parse(parser.PackageClauseOnly|parser.ParseComments).Doc != nil {
			n = 1
		}
		comments[f.dir()] += n
	}
	var all []string
	for dir, n := range comments {
		switch {
		case n == 0:
			all = append(all, fmt.Sprintf("package %s has no package comment, so nobody knows when to use it; say what it is for above a package clause, best in doc.go", dir))
		case n > 1:
			all = append(all, fmt.Sprintf("package %s has %d package comments, which are shown one after the other; keep one", dir, n))
		}
	}
	return all
}

func TestEveryPackageIsDocumented(t *testing.T) {
	for _, breach := range undocumented(tree(t, ".go")) {
		t.Error(breach)
	}
}

func TestUndocumented(t *testing.T) {
	with, without := "// Package a is.\npackage a\n", "package a\n"
	require.Len(t, undocumented([]source{{"a/a.go", without}, {"a/a_test.go", with}}), 1)
	require.Len(t, undocumented([]source{{"a/a.go", with}, {"a/doc.go", with}}), 1)
	require.Empty(t, undocumented([]source{{"a/a.go", without}, {"a/doc.go", with}}))
}
