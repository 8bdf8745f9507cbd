package ops

import (
	"fmt"
	"strings"
	"unicode"
)

// maxText bounds what is logged of an act, in bytes.
const maxText = 500

// Act is who changes something, and why. Both are required.
type Act struct {
	Operator string // a name or an address
	Reason   string // what colleagues should find in the log
}

func (a Act) validate() error {
	for _, f := range []struct{ name, text, fix string }{
		{"operator", a.Operator, "say who acts, as ada@example.com"},
		{"reason", a.Reason, "say why, for whoever reads the log"},
	} {
		switch {
		case strings.TrimSpace(f.text) == "":
			return invalid(f.name, "is missing", f.fix)
		case len(f.text) > maxText:
			return invalid(f.name, fmt.Sprintf("has %d bytes", len(f.text)), fmt.Sprintf("use at most %d", maxText))
		case strings.ContainsFunc(f.text, func(r rune) bool { return !unicode.IsPrint(r) }):
			return invalid(f.name, "has a character that cannot be printed", "use one line of plain text")
		}
	}
	return nil
}

// InvalidError refuses input before anything was tried.
type InvalidError struct{ Field, Problem, Fix string }

// Error returns the field and its problem.
func (e *InvalidError) Error() string { return e.Field + " " + e.Problem }

func invalid(field, problem, fix string) error { return &InvalidError{field, problem, fix} }
