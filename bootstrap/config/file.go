package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds the file, since the parser keeps all of it.
const maxFile = 1 << 20

// loadFile reads the YAML file and reports whether all of it was understood as YAML.
func (l *loader) loadFile(path string) (whole bool) {
	if path == "" {
		return true
	}
	f := &yamlFile{name: path, values: map[string]string{}, lines: map[string]int{}}
	text, err := os.ReadFile(path)
	switch {
	case err != nil:
		f.refuse(0, "", "cannot be read: "+withoutPath(err).Error(), "give the path of a YAML file that this user can read")
	case len(text) > maxFile:
		f.refuse(0, "", "is over 1 MiB", "give the path of the YAML file of this service")
	default:
		whole = f.parse(text)
	}
	for _, p := range f.problems {
		l.problems = append(l.problems, p)
		l.broken[p.Path] = true
	}
	for path, text := range f.values {
		l.set(path, text, place{OriginFile, f.at(f.lines[path])})
	}
	return whole
}

// yamlFile is the known keys of one YAML document. It keeps the text of a value as it was written, so that one parser serves files and
// variables, and the line, so that a problem can name it.
type yamlFile struct {
	name     string
	values   map[string]string // by path
	lines    map[string]int    // by path
	problems Problems
}

func (f *yamlFile) parse(text []byte) (ok bool) {
	doc, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		line, what := 0, "it cannot be parsed"
		// Only the message: the error's own text quotes the lines around it, secrets included.
		if e, ok := errors.AsType[*yaml.SyntaxError](err); ok && e.Token != nil {
			line, what = e.Token.Position.Line, e.Message
		}
		f.refuse(line, "", "is not valid YAML: "+what, "correct the file; two spaces indent a section")
		return false
	}
	bodies := 0
	for _, d := range doc.Docs {
		if d.Body == nil {
			continue
		}
		if bodies++; bodies > 1 {
			f.refuse(lineOf(d.Body), "", "holds a second document", "keep one document, without a --- line in the middle")
			break
		}
		f.walk(d.Body, "")
	}
	return true
}

func (f *yamlFile) walk(n ast.Node, path string) {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) == 0 && !isSection(path) {
			f.unknown(lineOf(n), path)
		}
		seen := map[string]int{}
		for _, entry := range n.Values {
			key, line := entry.Key.GetToken().Value, lineOf(entry.Key)
			if first := seen[key]; first != 0 {
				f.refuse(line, join(path, key), fmt.Sprintf("is already set in line %d", first), "keep one of the two")
				continue
			}
			seen[key] = line
			f.entry(entry, path)
		}
	case *ast.MappingValueNode:
		f.entry(n, path)
	case *ast.NullNode:
		if _, known := byPath(path); !known && !isSection(path) {
			f.unknown(lineOf(n), path)
		}
	case *ast.StringNode:
		f.scalar(n, path, n.Value)
	case *ast.LiteralNode:
		f.scalar(n, path, n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		f.scalar(n, path, n.GetToken().Value)
	case *ast.SequenceNode:
		f.refuse(lineOf(n), path, "is a list", "write one value")
	default: // anchors, aliases, tags, merges
		f.refuse(lineOf(n), path, "uses a feature of YAML that is not accepted here", "write the value itself, without &, *, ! or <<")
	}
}

func (f *yamlFile) entry(n *ast.MappingValueNode, parent string) {
	key := n.Key.GetToken().Value
	path := join(parent, key)
	if strings.Contains(key, ".") {
		f.refuse(lineOf(n.Key), path, "has a dot in its name", "write each part on a line of its own, indented by two spaces")
		return
	}
	f.walk(n.Value, path)
}

func (f *yamlFile) scalar(n ast.Node, path, text string) {
	line := lineOf(n)
	_, known := byPath(path)
	switch {
	case path == "":
		f.refuse(line, "", "holds a single value", "write keys and values, as in profile: dev")
	case isSection(path):
		f.refuse(line, path, "is a section, not a value", "write its keys below it, indented by two spaces")
	case !known:
		f.unknown(line, path)
	case text != "":
		f.lines[path] = line
		f.values[path] = text
	}
}

func (f *yamlFile) unknown(line int, path string) {
	fix := "remove it; registry/env-keys.yaml lists the keys"
	if near := suggest(path, Key.path); near != "" {
		fix = "did you mean " + near + "?"
	}
	f.refuse(line, path, "is not a key that is known", fix)
}

func (f *yamlFile) refuse(line int, path, problem, fix string) {
	p := Problem{Path: path, Where: f.at(line), Problem: problem, Fix: fix}
	if k, ok := byPath(path); ok {
		p.Key = k.Env
	}
	f.problems = append(f.problems, p)
}

func (f *yamlFile) at(line int) string {
	if line == 0 {
		return f.name
	}
	return fmt.Sprintf("%s:%d", f.name, line)
}

func join(parent, key string) string { return strings.TrimPrefix(parent+"."+key, ".") }

func lineOf(n ast.Node) int { return n.GetToken().Position.Line }

// isSection reports whether keys of the list lie below a path.
func isSection(path string) bool {
	return path == "" || slices.ContainsFunc(keys, func(k Key) bool { return strings.HasPrefix(k.Path, path+".") })
}
