package inbox

import (
	"fmt"
	"log/slog"
	"runtime"

	"caskeleton.dev/fault"
)

// op names the operation in errors.
const op = "inbox.Handle"

// ErrInvalidMessage refuses a message whose key cannot be stored; the error names the field. No redelivery mends it.
var ErrInvalidMessage error = fault.Text("inbox: the message is not valid")

// errOpen turns a duplicate away that this process is handling.
var errOpen error = fault.Text("inbox: another delivery of the message is open in this process")

var errNested error = fault.Text("inbox: a message is handled in a transaction of its own; call Handle outside of the one that is active, with the context from before")

// errNotRun rolls a transaction back in which the handler is not to run.
var errNotRun error = fault.Text("inbox: not run")

// PanicError is what a handler's panic becomes. Its text leaves Value out, which may hold anything.
type PanicError struct {
	Value any
	Stack []byte
}

// Error returns the type of the value, or the text where it is the runtime's own.
func (e *PanicError) Error() string {
	if r, ok := e.Value.(runtime.Error); ok {
		return "panic: " + r.Error()
	}
	return fmt.Sprintf("panic of type %T", e.Value)
}

// LogValue makes a panic log as its text.
func (e *PanicError) LogValue() slog.Value { return slog.StringValue(e.Error()) }
