package inbox

import (
	"errors"

	reasons "caskeleton.dev/internal/reason"
)

// reason describes err to operators, without values.
func reason(err error) string {
	safe := ""
	if p, ok := errors.AsType[*PanicError](err); ok {
		safe = p.Error()
	}
	return reasons.Of(err, safe)
}
