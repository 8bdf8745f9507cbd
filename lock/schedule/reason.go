package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"caskeleton.dev/fault"
)

const maxReason = 500

// operation is what the Op of an error looks like; anything else there could be a value.
var operation = regexp.MustCompile(`^[A-Za-z0-9_./()*-]{1,80}$`)

// reason describes err without its texts, which may hold values: the operations and codes of its chain, outermost first, and the type of what has no
// code.
func reason(err error) string {
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
	if p, ok := errors.AsType[*PanicError](err); ok {
		parts = append(parts, p.Error())
	} else if errors.Is(err, errGoexit) {
		parts = append(parts, errGoexit.Error())
	} else if fault.CodeOf(err) == fault.Internal && cause != nil {
		parts = append(parts, fmt.Sprintf("%T", root(cause)))
	}
	s := []rune(strings.Join(parts, ": "))
	if len(s) > maxReason {
		return string(s[:maxReason-1]) + "…"
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
