package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/knadh/koanf/v2"
)

// Source is where a configuration comes from.
type Source struct {
	File    string   // path of a YAML file; empty for none
	Environ []string // NAME=value, as os.Environ returns them
}

// Load reads a configuration. Its error, where there is one, is a [Problems]. Nothing is kept between calls.
func Load(src Source) (*Config, error) {
	l := &loader{merged: koanf.New("."), origins: map[string]place{}, values: map[string]any{}, broken: map[string]bool{}}
	l.loadDefaults()
	whole := l.loadFile(src.File)
	l.loadEnviron(src.Environ)
	l.parse()
	c := l.bind()
	if whole { // a rule would find missing what the file may hold
		l.check(c)
	}
	if len(l.problems) > 0 {
		return nil, l.problems
	}
	c.settings = l.settings()
	return c, nil
}

// loader gathers the text of each key in merged, then the typed values, and the problems met on the way.
type loader struct {
	merged   *koanf.Koanf
	origins  map[string]place // by path
	found    []Key            // the keys of the list, patterns replaced by what is set of them
	values   map[string]any   // by path: string, int64, bool, time.Duration, byteSize or Secret
	broken   map[string]bool  // by path: has a problem already, so that no rule is asked about it
	problems Problems
}

// place says which layer set a key, and where in it.
type place struct {
	origin Origin
	where  string
}

func (l *loader) loadDefaults() {
	for _, k := range keys {
		if k.Default != "" {
			l.set(k.Path, k.Default, place{OriginDefault, "default"})
		}
	}
}

// set gives a key its text in one layer.
func (l *loader) set(path, text string, at place) {
	if err := l.merged.Set(path, text); err != nil {
		l.problems = append(l.problems, Problem{Path: path, Where: at.where, Problem: "cannot be set", Fix: "report this as a defect"})
	}
	l.origins[path] = at
}

// parse turns text into values, in the order of the list.
func (l *loader) parse() {
	for _, k := range keys {
		if k.Pattern {
			l.found = append(l.found, l.expand(k)...)
		} else {
			l.found = append(l.found, k)
		}
	}
	for _, k := range l.found {
		if !l.merged.Exists(k.Path) || l.broken[k.Path] {
			continue
		}
		raw := l.merged.String(k.Path)
		v, problem, fix := k.parse(raw)
		if problem != "" {
			l.refuse(k, raw, problem, fix)
			continue
		}
		l.values[k.Path] = v
	}
}

// expand returns the keys that are set of a pattern, lowest version first.
func (l *loader) expand(pattern Key) []Key {
	var set []Key
	for path := range l.origins {
		if k, ok := byPath(path); ok && k.Pattern && pattern.fill(k.arg(pattern)).Path == path {
			set = append(set, k)
		}
	}
	slices.SortFunc(set, func(a, b Key) int { return compareVersions(a.arg(pattern), b.arg(pattern)) })
	return set
}

// refuse reports a problem with the value that a key has.
func (l *loader) refuse(k Key, raw, problem, fix string) {
	if k.Secret {
		raw = ""
	}
	l.broken[k.Path] = true
	l.problems = append(l.problems, Problem{Key: k.Env, Path: k.Path, Where: l.origins[k.Path].where, Value: raw, Problem: problem, Fix: fix})
}

// compareVersions orders names as people do: v2 before v10.
func compareVersions(a, b string) int {
	for x, y := a, b; x != "" || y != ""; {
		var s, t string
		s, x = leading(x)
		t, y = leading(y)
		m, errM := strconv.ParseUint(s, 10, 64)
		n, errN := strconv.ParseUint(t, 10, 64)
		c := cmp.Compare(s, t)
		if errM == nil && errN == nil {
			c = cmp.Compare(m, n)
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(a, b)
}

// leading splits off the run of digits, or of anything else, that s starts with.
func leading(s string) (run, rest string) {
	const number = "0123456789"
	rest = strings.TrimLeft(s, number)
	if len(rest) == len(s) && s != "" {
		if i := strings.IndexAny(s, number); i > 0 {
			return s[:i], s[i:]
		}
		return s, ""
	}
	return s[:len(s)-len(rest)], rest
}
