package fault

import (
	"errors"
	"log/slog"
	"time"
)

// Error is a failure with a code. Its text and its cause are for developers, [Reason] is for the log, and a client gets the code, the code's client
// text and Fields.
// An Error is immutable once returned.
type Error struct {
	Code   Code
	Op     string        // the operation that failed, as package.Verb: "idempotency.Claim"
	Err    error         // the cause; nil where the code says it all
	Fields []Field       // what is wrong with the input, safe for clients
	Status int           // HTTP status in place of the code's own, where the registry lists a second one; else 0
	After  time.Duration // the earliest moment to try again, from now; 0 means that nothing is known
}

// Field is one thing wrong with an input. All three texts go to the client, so none may hold what the client did not send or may not know.
type Field struct {
	Path    string `json:"field"`   // "items[2].quantity", or a header's name
	Problem string `json:"problem"` // "must be between 1 and 1000"
	Fix     string `json:"fix,omitempty"`
}

// New returns an error with a code and a cause. cause may be nil.
func New(code Code, op string, cause error) *Error { return &Error{Code: code, Op: op, Err: cause} }

// Invalid returns a [RequestInvalid] (422) that names each field at fault: the input could be read, and it breaks a rule.
func Invalid(op string, fields ...Field) *Error {
	return &Error{Code: RequestInvalid, Op: op, Fields: fields}
}

// Malformed returns a [RequestInvalid] (400): the input could not be read at all.
func Malformed(op string, cause error, fields ...Field) *Error {
	return &Error{Code: RequestInvalid, Op: op, Err: cause, Fields: fields, Status: RequestInvalid.get().AlsoStatus}
}

// Error returns operation, code and cause. The cause's text may hold values, so that a log gets [Reason] instead.
func (e *Error) Error() string {
	s := e.Code.String()
	if e.Op != "" {
		s = e.Op + ": " + s
	}
	for _, f := range e.Fields {
		s += ": " + f.Path + " " + f.Problem
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is e's code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c.get() == e.Code.get()
}

// LogValue makes an error log as its parts, with its cause as in a [Reason].
func (e *Error) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("code", e.Code.String())}
	if op := e.op(); op != "" {
		attrs = append(attrs, slog.String("op", op))
	}
	if e.Err != nil {
		cause, _ := explain(e.Err)
		attrs = append(attrs, slog.String("cause", line(cause)))
	}
	return slog.GroupValue(attrs...)
}

// CodeOf returns the outermost code in err's chain, and [Internal] where there is none. A nil err has no code: asking is a mistake
// that also reads as Internal.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	if c, ok := errors.AsType[Code](err); ok {
		return c
	}
	return Internal
}

// StatusOf returns the HTTP status that err is answered with.
func StatusOf(err error) int {
	if e, ok := errors.AsType[*Error](err); ok && e.Status != 0 {
		return e.Status
	}
	return CodeOf(err).Status()
}

// Retryable reports whether the same caller may send the same thing again, as it is.
func Retryable(err error) bool { return err != nil && CodeOf(err).Retryable() }

// RetryAfter returns how long to wait before trying again, and whether anything is known about that.
func RetryAfter(err error) (time.Duration, bool) {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return 0, false
		}
		if e.After > 0 {
			return e.After, true
		}
		err = e.Err
	}
	return 0, false
}

// FieldsOf returns what is wrong with the input, as the outermost error that says so does.
func FieldsOf(err error) []Field {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return nil
		}
		if len(e.Fields) > 0 {
			return e.Fields
		}
		err = e.Err
	}
	return nil
}
