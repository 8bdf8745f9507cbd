package config

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
)

// maxSecretFile bounds what is read for one secret, so that a wrong path does not fill the memory.
const maxSecretFile = 64 << 10

// loadEnviron reads the variables of the list, and refuses others that start with APP_.
func (l *loader) loadEnviron(environ []string) {
	set := map[string]string{} // of a name given twice, the last counts
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		set[name] = value
	}
	provider := env.Provider(".", env.Opt{
		EnvironFunc:   func() []string { return byName(set) },
		TransformFunc: func(name, value string) (string, any) { return l.variable(name, value, set) },
	})
	if err := l.merged.Load(provider, nil); err != nil {
		l.problems = append(l.problems, Problem{Where: "environment", Problem: "cannot be read", Fix: "report this as a defect"})
	}
}

// byName lists variables in the order in which their problems are reported.
func byName(set map[string]string) []string {
	list := make([]string, 0, len(set))
	for _, name := range slices.Sorted(maps.Keys(set)) {
		list = append(list, name+"="+set[name])
	}
	return list
}

// variable returns the path and the text that a variable sets, and no path where it sets nothing.
func (l *loader) variable(name, value string, set map[string]string) (string, any) {
	if k, ok := byEnv(name); ok {
		if value == "" {
			return "", nil
		}
		l.origins[k.Path] = place{OriginEnv, "environment"}
		return k.Path, value
	}
	if base, ok := strings.CutSuffix(name, "_FILE"); ok {
		if k, known := byEnv(base); known && k.Secret {
			return l.secretFile(k, value, set[base] != "")
		}
	}
	if strings.HasPrefix(name, "APP_") {
		l.problems = append(l.problems, unknownVariable(name))
	}
	return "", nil
}

// secretFile returns what the file at path holds. The path is not shown in a problem, since it may be the secret itself, given under
// the wrong name.
func (l *loader) secretFile(k Key, path string, alsoSet bool) (string, any) {
	if path == "" {
		return "", nil
	}
	l.origins[k.Path] = place{OriginSecretFile, "secret file"}
	file := k
	file.Env += "_FILE"
	if alsoSet {
		l.refuse(file, "", "is set, and so is "+k.Env, "keep one of the two")
		return k.Path, ""
	}
	text, err := readSecret(path)
	if err != nil {
		l.refuse(file, "", "names a file that cannot be used: "+err.Error(), "give the path of a file that this user can read and that holds the secret alone")
		return k.Path, ""
	}
	return k.Path, text
}

// readSecret returns errors that do not hold the path.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", withoutPath(err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", withoutPath(err)
	}
	if len(b) > maxSecretFile {
		return "", errors.New("it is over 64 KiB")
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if text == "" {
		return "", errors.New("it is empty")
	}
	return text, nil
}

func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func unknownVariable(name string) Problem {
	p := Problem{Key: name, Where: "environment", Problem: "is not a variable that is known"}
	base, isFile := strings.CutSuffix(name, "_FILE")
	near := suggest(name, Key.env)
	switch k, known := byEnv(base); {
	case isFile && known && !k.Secret:
		p.Fix = "set " + base + " itself: only a secret can come from a file"
	case near != "":
		p.Fix = "did you mean " + near + "?"
	default:
		p.Fix = "remove it; names that start with APP_ are kept for the documented ones"
	}
	return p
}
