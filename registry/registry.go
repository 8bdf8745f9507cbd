// Package registry reads the kit's registries (failure codes, metrics, environment variables, tables), which are YAML files beside this source, and renders
// what is generated from them: Go tables and reference pages. `make generate` writes the files, `make verify` and this package's test fail when
// one of them differs. The package imports nothing of the kit, so that it can mend a generated file that does not compile.
package registry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/goccy/go-yaml"
)

// Registry is the content of the YAML files, checked, in their order.
type Registry struct {
	Codes   []Code
	Metrics []Metric
	Keys    []EnvKey
	Tables  []Table
}

// Load reads error-codes.yaml, metrics.yaml, env-keys.yaml and tables.yaml at the root of fsys. The error lists every problem of all, each with its file,
// its entry and what to do.
func Load(fsys fs.FS) (*Registry, error) {
	var codes struct{ Codes []Code }
	var metrics struct{ Metrics []Metric }
	var keys struct{ Keys []EnvKey }
	var tables struct{ Tables []Table }
	if err := errors.Join(
		decode(fsys, "error-codes.yaml", &codes),
		decode(fsys, "metrics.yaml", &metrics),
		decode(fsys, "env-keys.yaml", &keys),
		decode(fsys, "tables.yaml", &tables),
	); err != nil {
		return nil, err
	}
	r := &Registry{Codes: codes.Codes, Metrics: metrics.Metrics, Keys: keys.Keys, Tables: tables.Tables}
	return r, errors.Join(
		within("error-codes.yaml", checkCodes(r.Codes)),
		within("metrics.yaml", checkMetrics(r.Metrics)),
		within("env-keys.yaml", checkKeys(r.Keys)),
		within("tables.yaml", checkTables(r.Tables)),
	)
}

// decode refuses fields that the registry does not know: a misspelt one would otherwise read as absent.
func decode(fsys fs.FS, name string, into any) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	err = yaml.NewDecoder(bytes.NewReader(src), yaml.Strict()).Decode(into)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func within(file string, problems []error) error {
	for i, p := range problems {
		problems[i] = fmt.Errorf("%s: %w", file, p)
	}
	return errors.Join(problems...)
}

// problems collects what is wrong with the entries of one registry.
type problems struct {
	seen map[string]bool
	list []error
}

func (p *problems) addf(entry, format string, args ...any) {
	p.list = append(p.list, fmt.Errorf("%s: %s", entry, fmt.Sprintf(format, args...)))
}

// once refuses a second entry with the same value of a field that identifies it.
func (p *problems) once(entry, field, value string) {
	if p.seen == nil {
		p.seen = make(map[string]bool)
	}
	k := field + "\x00" + value
	if p.seen[k] {
		p.addf(entry, "%s %q is taken by an entry above; rename one or delete it", field, value)
	}
	p.seen[k] = true
}

// sentence refuses a text that is missing or is not a sentence.
func (p *problems) sentence(entry, field, text string) {
	switch {
	case strings.TrimSpace(text) == "":
		p.addf(entry, "%s is missing; write a sentence", field)
	case !strings.HasSuffix(text, ".") || strings.ContainsAny(text, "\n\t"):
		p.addf(entry, "%s %q is not one line that ends with a full stop", field, text)
	}
}
