// Package reason tells why something failed, for tables and logs that operators read, without any text of the error, which may hold values.
package reason

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"caskeleton.dev/fault"
)

const longest = 500 // characters

// operation is what the Op of an error looks like; anything else there could be a value.
var operation = regexp.MustCompile(`^[A-Za-z0-9_./()*-]{1,80}$`)

// Of returns the operations and codes of err's chain, outermost first, and the type of what has no code; safe, where it is not "", stands in
// place of that type.
func Of(err error, safe string) string {
	var parts []string
	cause := err
	for e, ok := errors.AsType[*fault.Error](cause); ok; e, ok = errors.AsType[*fault.Error](cause) {
		if operation.MatchString(e.Op) {
			parts = append(parts, e.Op)
		}
		parts = append(parts, e.Code.String())
		cause = e.Err
	}
	if len(parts) == 0 {
		parts = append(parts, fault.CodeOf(err).String())
	}
	if safe == "" && fault.CodeOf(err) == fault.Internal && cause != nil {
		safe = fmt.Sprintf("%T", root(cause))
	}
	if safe != "" {
		parts = append(parts, safe)
	}
	s := []rune(strings.Join(parts, ": "))
	if len(s) > longest {
		return string(s[:longest-1]) + "…"
	}
	return string(s)
}

// root is the innermost error of a chain; of joined ones, the first.
func root(err error) error {
	for {
		next := errors.Unwrap(err)
		if many, ok := err.(interface{ Unwrap() []error }); ok && len(many.Unwrap()) > 0 {
			next = many.Unwrap()[0]
		}
		if next == nil {
			return err
		}
		err = next
	}
}
