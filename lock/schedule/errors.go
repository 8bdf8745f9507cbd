package schedule

import (
	"errors"
	"fmt"
)

// PanicError is a panic in a job. Its text has the type of what was thrown, and no value.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic of type %T", e.Value) }

var (
	errGoexit  = errors.New("the job ended its goroutine")
	errRunning = errors.New("schedule: this scheduler runs already; make one for each Run")
)
