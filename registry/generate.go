package registry

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files renders everything that is generated: content by slash-separated path from the repository's root.
func (r *Registry) Files() (map[string][]byte, error) {
	files := map[string][]byte{
		"fault/codes_gen.go":              codesGo(r.Codes),
		"bootstrap/config/keys_gen.go":    keysGo(r.Keys),
		tablesFile:                        tablesGo(r.Tables),
		"docs/reference/error-codes.md":   codesPage(r.Codes),
		"docs/reference/metrics.md":       metricsPage(r.Metrics),
		"docs/reference/configuration.md": keysPage(r.Keys),
	}
	for path, src := range files {
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		formatted, err := format.Source(src)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files[path] = formatted
	}
	return files, nil
}

// Write reads the registries of the repository at root and writes what is generated from them. It returns the paths whose content changed.
func Write(root string) ([]string, error) {
	files, stale, err := compare(root)
	if err != nil {
		return nil, err
	}
	for _, path := range stale {
		at := filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil { //nolint:gosec // part of the source tree, for everybody to read
			return nil, err
		}
		if err := os.WriteFile(at, files[path], 0o644); err != nil { //nolint:gosec // as above
			return nil, err
		}
	}
	return stale, nil
}

// Verify returns an error that names each generated file of the repository at root that differs from its registry, and the command that mends it.
// It writes nothing.
func Verify(root string) error {
	_, stale, err := compare(root)
	if err != nil {
		return err
	}
	var all []error
	for _, path := range stale {
		all = append(all, fmt.Errorf("%s differs from what registry/ says; run `make generate` and commit the result", path))
	}
	return errors.Join(all...)
}

func compare(root string) (files map[string][]byte, stale []string, err error) {
	r, err := Load(os.DirFS(filepath.Join(root, "registry")))
	if err != nil {
		return nil, nil, err
	}
	if files, err = r.Files(); err != nil {
		return nil, nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		have, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, nil, err
		}
		if err != nil || !bytes.Equal(have, files[path]) {
			stale = append(stale, path)
		}
	}
	return files, stale, nil
}
