package registry

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// EnvKey is one entry of env-keys.yaml: an environment variable and its place in the configuration file.
type EnvKey struct {
	Name    string
	Path    string   // in the YAML configuration, e.g. db.max_conns
	Type    string   // string, int, bool, duration, bytes or enum
	Default string   // "" where there is none
	Values  []string // of an enum
	Secret  bool     // never shown; may come from a file
	Pattern bool     // name and path hold the same <placeholder>, once each, for many keys
	Doc     string   // what it is, with its unit
}

var (
	keyName = regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+|_<[A-Za-z]+>)*$`)
	keyPath = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*|\.<[a-z]+>)*$`)
	// keyTypes maps each type to whether a default is one of its values.
	keyTypes = map[string]func(k EnvKey) bool{
		"string":   func(EnvKey) bool { return true },
		"int":      func(k EnvKey) bool { _, err := strconv.ParseInt(k.Default, 10, 64); return err == nil },
		"bool":     func(k EnvKey) bool { return k.Default == "true" || k.Default == "false" },
		"duration": func(k EnvKey) bool { _, err := time.ParseDuration(k.Default); return err == nil },
		"bytes":    func(k EnvKey) bool { return bytesValue.MatchString(k.Default) },
		"enum":     func(k EnvKey) bool { return slices.Contains(k.Values, k.Default) },
	}
	placeholder = regexp.MustCompile(`<[a-z]+>`)
	bytesValue  = regexp.MustCompile(`^[0-9]+(B|KiB|MiB|GiB)$`)
)

func checkKeys(keys []EnvKey) []error {
	var p problems
	for i, k := range keys {
		entry := k.Name
		if !keyName.MatchString(k.Name) {
			entry = fmt.Sprintf("entry %d", i+1)
			p.addf(entry, "name %q is not UPPER_SNAKE_CASE, where a word may be a <placeholder>", k.Name)
		}
		if !keyPath.MatchString(k.Path) {
			p.addf(entry, "path %q is not lower_snake words joined by dots, where a word may be a <placeholder>", k.Path)
		}
		p.once(entry, "name", k.Name)
		p.once(entry, "path", k.Path)
		if name, path := placeholders(k.Name), placeholders(k.Path); !slices.Equal(name, path) || k.Pattern != (len(name) == 1) || len(name) > 1 {
			p.addf(entry, "name, path and pattern disagree: with pattern: true both hold the same <placeholder> once, without it neither holds one")
		}
		for _, o := range keys {
			if strings.HasPrefix(o.Path, k.Path+".") {
				p.addf(entry, "path %q is a value here and a section in %s; move one of them", k.Path, o.Name)
			}
		}
		p.value(entry, k)
		p.sentence(entry, "doc", k.Doc)
	}
	return p.list
}

func (p *problems) value(entry string, k EnvKey) {
	valid, ok := keyTypes[k.Type]
	switch {
	case !ok:
		p.addf(entry, "type %q is not one of string, int, bool, duration, bytes, enum", k.Type)
	case (k.Type == "enum") != (len(k.Values) > 0):
		p.addf(entry, "values are for type enum, which needs them")
	case k.Default != "" && (k.Secret || k.Pattern):
		p.addf(entry, "a secret or a pattern has no default; delete it")
	case k.Default != "" && !valid(k):
		p.addf(entry, "default %q is not a value of type %s", k.Default, k.Type)
	}
}

// placeholders returns those of a name or a path; their case follows what is around them.
func placeholders(s string) []string { return placeholder.FindAllString(strings.ToLower(s), -1) }

func keysGo(keys []EnvKey) []byte {
	var b bytes.Buffer
	b.WriteString("// Code generated from registry/env-keys.yaml by make generate. DO NOT EDIT.\n\npackage config\n\n" +
		"// keys is every setting, in the order of docs/reference/configuration.md; nothing changes it.\nvar keys = []Key{\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "{Env: %q, Path: %q, Type: %q", k.Name, k.Path, k.Type)
		if k.Default != "" {
			fmt.Fprintf(&b, ", Default: %q", k.Default)
		}
		if len(k.Values) > 0 {
			fmt.Fprintf(&b, ", Values: %#v", k.Values)
		}
		if k.Secret {
			b.WriteString(", Secret: true")
		}
		if k.Pattern {
			b.WriteString(", Pattern: true")
		}
		fmt.Fprintf(&b, ", Doc: %q},\n", k.Doc)
	}
	b.WriteString("}\n")
	return b.Bytes()
}

func keysPage(keys []EnvKey) []byte {
	var b bytes.Buffer
	b.WriteString(pageHead("env-keys.yaml", "Configuration") + `Every setting has an environment variable and a path in the YAML configuration file; the variable wins. The file is the one
given with --config; there is no other. An empty variable counts as unset. A secret may come from a file that <NAME>_FILE names. A duration is a number with a unit, such as
` + "`250ms`, `5s` or `1h30m`; bytes are a whole number with `B`, `KiB`, `MiB` or `GiB`" + `. Secrets are never printed.

| variable | path | type | default | meaning |
|---|---|---|---|---|
`)
	for _, k := range keys {
		typ := k.Type
		if k.Type == "enum" {
			typ = codeList(k.Values)
		}
		if k.Secret {
			typ += ", secret"
		}
		def := ""
		if k.Default != "" {
			def = "`" + k.Default + "`"
		}
		row(&b, "`"+k.Name+"`", "`"+k.Path+"`", typ, def, k.Doc)
	}
	return b.Bytes()
}
