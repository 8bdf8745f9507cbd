package schedule

import (
	"fmt"
	"log/slog"

	"caskeleton.dev/fault"
)

// PanicError is a panic in a job. Its text has the type of what was thrown, and no value.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic of type %T", e.Value) }

// LogValue makes a panic log as its text.
func (e *PanicError) LogValue() slog.Value { return slog.StringValue(e.Error()) }

var (
	errGoexit  error = fault.Text("the job ended its goroutine")
	errRunning error = fault.Text("schedule: this scheduler runs already; make one for each Run")
)
