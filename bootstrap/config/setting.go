package config

import (
	"iter"
	"slices"
)

// Origin is the layer that gave a key its value.
type Origin string

// Where a value may come from, weakest first.
const (
	OriginUnset      Origin = "unset"
	OriginDefault    Origin = "default"
	OriginFile       Origin = "file"        // the YAML file
	OriginEnv        Origin = "env"         // the variable
	OriginSecretFile Origin = "secret_file" // the file that the variable with _FILE names
)

// Setting is one effective value, ready to be shown.
type Setting struct {
	Key    string `json:"key"` // YAML path
	Value  string `json:"value"`
	Origin Origin `json:"origin"`
	Env    string `json:"env"`
}

// Settings returns every effective value in the order of the list, secrets hidden. The caller owns the slice.
func (c *Config) Settings() []Setting { return slices.Clone(c.settings) }

func (l *loader) settings() []Setting {
	all := make([]Setting, 0, len(l.found))
	for _, k := range l.found {
		s := Setting{Key: k.Path, Env: k.Env, Value: format(l.values[k.Path]), Origin: OriginUnset}
		if p, ok := l.origins[k.Path]; ok {
			s.Origin = p.origin
		}
		all = append(all, s)
	}
	return all
}

// filled yields the keys that are set of the pattern at path, by placeholder, in order.
func (l *loader) filled(path string) iter.Seq2[string, Key] {
	pattern := patternAt(path)
	return func(yield func(string, Key) bool) {
		for _, k := range l.found {
			if k.Pattern && pattern.fill(k.arg(pattern)).Path == k.Path && !yield(k.arg(pattern), k) {
				return
			}
		}
	}
}

// patternAt returns the pattern whose own path this is.
func patternAt(path string) Key {
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Path == path })
	if i < 0 {
		return Key{}
	}
	return keys[i]
}
