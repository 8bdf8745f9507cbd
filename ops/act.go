package ops

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"caskeleton.dev/audit"
)

// maxText bounds what is kept of an act, in bytes.
const maxText = 500

// Act is who changes something, and why. Both are required, and kept for good.
type Act struct {
	Operator string // a name or an address
	Reason   string // what colleagues should find when they look at what was changed
}

func (a Act) validate() error {
	for _, f := range []struct{ name, text, fix string }{
		{"operator", a.Operator, "say who acts, as ada@example.com"},
		{"reason", a.Reason, "say why, for whoever looks at it later"},
	} {
		switch {
		case strings.TrimSpace(f.text) == "":
			return invalid(f.name, "is missing", f.fix)
		case len(f.text) > maxText:
			return invalid(f.name, fmt.Sprintf("has %d bytes", len(f.text)), fmt.Sprintf("use at most %d", maxText))
		case !utf8.ValidString(f.text), strings.ContainsFunc(f.text, func(r rune) bool { return !unicode.IsPrint(r) }):
			return invalid(f.name, "has a character that cannot be printed", "use one line of plain text")
		}
	}
	return nil
}

// on returns what is kept of an act that changed one thing: what that was, and what it has become, where it is still there.
func (a Act) on(verb, kind, subject string, before, after any) (audit.Action, error) {
	kept := audit.Action{Operator: a.Operator, Verb: verb, Kind: kind, Subject: subject, Reason: a.Reason, Changed: 1}
	for _, s := range []struct {
		into  *json.RawMessage
		state any
	}{{&kept.Before, before}, {&kept.After, after}} {
		if s.state == nil {
			continue
		}
		text, err := json.Marshal(s.state)
		if err != nil {
			return audit.Action{}, fmt.Errorf("ops: %s cannot be recorded: %w", verb, err)
		}
		*s.into = text
	}
	return kept, nil
}

// InvalidError refuses input before anything was tried.
type InvalidError struct{ Field, Problem, Fix string }

// Error returns the field and its problem.
func (e *InvalidError) Error() string { return e.Field + " " + e.Problem }

func invalid(field, problem, fix string) error { return &InvalidError{field, problem, fix} }
