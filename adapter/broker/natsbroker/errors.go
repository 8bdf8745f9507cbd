package natsbroker

import (
	"errors"
	"fmt"
	"strings"

	"caskeleton.dev/outbox"
)

// NotDurableError says why a stream is not trusted with events: what it acknowledges could be lost. It is also [outbox.ErrBrokerDown],
// since nothing is wrong with the events.
type NotDurableError struct {
	Stream   string
	Refusals []Refusal
}

// Refusal is one setting that is not as it must be.
type Refusal struct {
	Setting string
	Value   string // what it is
	Fix     string // what to do
}

// Error lists all refusals.
func (e *NotDurableError) Error() string {
	all := make([]string, len(e.Refusals))
	for i, r := range e.Refusals {
		all[i] = fmt.Sprintf("%s is %s: %s", r.Setting, r.Value, r.Fix)
	}
	return fmt.Sprintf("natsbroker: stream %q may lose events: %s", e.Stream, strings.Join(all, "; "))
}

// Is makes the error an [outbox.ErrBrokerDown].
func (e *NotDurableError) Is(target error) bool { return target == outbox.ErrBrokerDown }

// ErrUnknownOutcome is what an error of Publish is where the server may have stored the event. It is to be sent again with the same id.
var ErrUnknownOutcome = errors.New("the outcome is unknown")

// downError is an err with nothing wrong in the event.
type downError struct{ err error }

func (e downError) Error() string   { return e.err.Error() }
func (e downError) Unwrap() []error { return []error{outbox.ErrBrokerDown, e.err} }
