package config

import (
	"slices"
	"strings"
)

// Key is one documented setting. A pattern stands for many keys: its Env and its Path each hold one placeholder in angle brackets,
// as in APP_IDEMPOTENCY_KEY_<version> and idempotency.keys.<version>.
type Key struct {
	Env     string   // environment variable
	Path    string   // YAML path, sections joined by dots
	Type    string   // string, int, bool, duration, bytes or enum
	Default string   // as text; empty means not set
	Values  []string // what an enum may be
	Secret  bool     // never shown; may come from a file named by Env + _FILE
	Pattern bool     // Env and Path hold a placeholder
	Doc     string   // one sentence
}

// Keys returns the documented settings, in the order in which they are reported. The caller owns the slice.
func Keys() []Key { return slices.Clone(keys) }

// byEnv returns the key that a variable sets; a pattern comes back with its placeholder filled in.
func byEnv(name string) (Key, bool) { return lookup(name, Key.env) }

// byPath returns the key at a YAML path, as byEnv does.
func byPath(path string) (Key, bool) { return lookup(path, Key.path) }

func (k Key) env() string  { return k.Env }
func (k Key) path() string { return k.Path }

// lookup prefers a plain key to a pattern, and the pattern with the longer literal part: APP_CACHE_X_NEGATIVE_TTL is not the TTL of
// a role named X_NEGATIVE.
func lookup(name string, part func(Key) string) (Key, bool) {
	var best Key
	literal := 0
	for _, k := range keys {
		if !k.Pattern {
			if part(k) == name {
				return k, true
			}
			continue
		}
		before, after := around(part(k))
		arg, ok := strings.CutPrefix(name, before)
		if !ok {
			continue
		}
		if arg, ok = strings.CutSuffix(arg, after); !ok || !validArg(arg) {
			continue
		}
		// The two spellings must be one key: upper case in a variable, lower case in a path.
		filled := k.fill(arg)
		if n := len(before) + len(after); part(filled) == name && n > literal {
			best, literal = filled, n
		}
	}
	return best, literal > 0
}

// fill returns the key that a pattern stands for once its placeholder is arg.
func (k Key) fill(arg string) Key {
	before, after := around(k.Env)
	k.Env = before + strings.ToUpper(arg) + after
	before, after = around(k.Path)
	k.Path = before + strings.ToLower(arg) + after
	return k
}

// arg returns what the placeholder of pattern became in the path of a filled key.
func (k Key) arg(pattern Key) string {
	before, after := around(pattern.Path)
	return strings.TrimSuffix(strings.TrimPrefix(k.Path, before), after)
}

func around(pattern string) (before, after string) {
	before, rest, _ := strings.Cut(pattern, "<")
	_, after, _ = strings.Cut(rest, ">")
	return before, after
}

// validArg refuses "file" at the end, since X_FILE names the file that holds X.
func validArg(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	lower := strings.ToLower(s)
	return s != "" && s[0] != '_' && s[len(s)-1] != '_' && lower != "file" && !strings.HasSuffix(lower, "_file")
}
