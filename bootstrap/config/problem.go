package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Problem is one thing that a configuration is refused for.
type Problem struct {
	Key     string // variable, as APP_DB_MAX_CONNS; empty where the place has none
	Path    string // YAML path, as db.max_conns; empty where the place has none
	Where   string // "environment", "default", "secret file" or file:line; empty for a rule about several keys
	Value   string // as it was given; empty for a secret, and for a key that is not known, since it may be a secret misspelt
	Problem string // what is wrong, to be read after the name: "has no unit"
	Fix     string // what to do: "write 10s for seconds"
}

// String returns the problem in two lines, the fix in the second.
func (p Problem) String() string {
	var b strings.Builder
	switch {
	case p.Key == "":
		b.WriteString(p.Path)
	case p.Path == "":
		b.WriteString(p.Key)
	default:
		fmt.Fprintf(&b, "%s (%s)", p.Key, p.Path)
	}
	if p.Value != "" {
		b.WriteString(" = " + strconv.Quote(p.Value))
	}
	if p.Where != "" {
		b.WriteString(", " + p.Where)
	}
	fmt.Fprintf(&b, ": %s\n    fix: %s", p.Problem, p.Fix)
	return strings.TrimPrefix(b.String(), ", ")
}

// Problems is everything that a configuration is refused for, in an order that depends on the input alone: what the file has that is
// not known, by line; the variables that are not known, by name; then each key in the order of the list; then the rules about
// several keys. It is never empty where it is an error.
type Problems []Problem //nolint:errname // it is a list first, and reads better as one

// Error returns all problems, one after another. No secret is in it.
func (ps Problems) Error() string {
	var b strings.Builder
	b.WriteString("the configuration has 1 problem")
	if len(ps) != 1 {
		b.Reset()
		fmt.Fprintf(&b, "the configuration has %d problems", len(ps))
	}
	for _, p := range ps {
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}
