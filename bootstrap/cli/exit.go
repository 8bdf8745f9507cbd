package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"caskeleton.dev/bootstrap/config"
	"caskeleton.dev/fault"
)

// The exit codes of every command. A process that a second signal ends has 128 and the signal's number, as a shell would say.
const (
	ExitDone         = 0
	ExitFailed       = 1
	ExitRefused      = 2 // nothing was tried: bad usage, a configuration with problems, an answer of no; or it was cancelled
	ExitUnauthorised = 4
)

// RefusedError says that a command did not begin its work, and what to do about it.
type RefusedError struct{ Problem, Hint string }

// Error returns the problem.
func (e *RefusedError) Error() string { return e.Problem }

// Refused returns a [RefusedError].
func Refused(problem, hint string) error { return &RefusedError{problem, hint} }

// report writes an error for the operator and returns the exit code that it stands for.
func report(ctx context.Context, stderr io.Writer, err error) int {
	if err == nil {
		return ExitDone
	}
	code, hint := judge(err)
	if ctx.Err() != nil && code == ExitFailed {
		// Whatever it failed with, it was told to stop.
		code, hint = ExitRefused, "it was cancelled: look at what it did before you run it again"
	}
	_, _ = fmt.Fprintf(stderr, "error: %s\n", err)
	if hint != "" {
		_, _ = fmt.Fprintf(stderr, "hint: %s\n", hint)
	}
	return code
}

func judge(err error) (code int, hint string) {
	if r, ok := errors.AsType[*RefusedError](err); ok {
		return ExitRefused, r.Hint
	}
	if _, ok := errors.AsType[config.Problems](err); ok {
		return ExitRefused, "" // each problem has a fix
	}
	if !coded(err) {
		return ExitFailed, ""
	}
	c := fault.CodeOf(err)
	switch {
	case c.Category() == fault.CategoryUnauthenticated, c.Category() == fault.CategoryForbidden, c == fault.DBAccessDenied:
		return ExitUnauthorised, c.Hint()
	}
	return ExitFailed, c.Hint()
}

// coded reports whether a code was given, since CodeOf reads its absence as Internal, whose hint would mislead here.
func coded(err error) bool {
	_, isError := errors.AsType[*fault.Error](err)
	_, isCode := errors.AsType[fault.Code](err)
	return isError || isCode
}
