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

// A name that goes on with _ or < is a prefix or a pattern that the text speaks of.
var appVariable = regexp.MustCompile(`\bAPP_[A-Z0-9_]+<?`)

// unknownVariables lists the APP_ names in f that set nothing. Of Go it reads the literals: a comment may give an example.
func unknownVariables(f source, keys []registry.EnvKey) []string {
	known := func(name string) bool {
		for _, k := range keys {
			prefix, _, _ := strings.Cut(k.Name, "<")
			if name == k.Name || k.Secret && name == k.Name+"_FILE" || k.Pattern && strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return false
	}
	var all []string
	check := func(at, text string) {
		for _, name := range appVariable.FindAllString(text, -1) {
			if !strings.HasSuffix(name, "_") && !strings.HasSuffix(name, "<") && !known(name) {
				all = append(all, fmt.Sprintf("%s: registry/env-keys.yaml has no %s, so whoever sets it will wonder why nothing changes; correct the name or add the key", at, name))
			}
		}
	}
	if strings.HasSuffix(f.path, ".go") {
		literals(f, check)
	} else {
		check(f.path, f.text)
	}
	return all
}

func TestVariablesAreRegistered(t *testing.T) {
	r, err := registry.Load(os.DirFS(filepath.Join("..", "..", "registry")))
	require.NoError(t, err)
	for _, f := range tree(t, ".go", ".md", ".yaml", ".yml", ".sh", "Makefile") {
		if f.isTest() {
			continue // tests try wrong names too
		}
		for _, breach := range unknownVariables(f, r.Keys) {
			t.Error(breach)
		}
	}
}

func TestUnknownVariables(t *testing.T) {
	keys := []registry.EnvKey{{Name: "APP_A"}, {Name: "APP_S", Secret: true}, {Name: "APP_K_<v>", Pattern: true}}
	require.Empty(t, unknownVariables(source{"a.md", "APP_A, APP_S_FILE, APP_K_2026, APP_K_<v>, APP_*, APP_B_<x>, APP_A."}, keys))
	require.Len(t, unknownVariables(source{"a.md", "APP_B and APP_A_FILE"}, keys), 2)
	require.Len(t, unknownVariables(source{"a.go", "package a\n\n// APP_X\nconst hint = \"set APP_B\"\n"}, keys), 1)
}
