package fault

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"unicode"
)

// longestReason bounds a reason, in bytes: it goes into a line of a log, or a column.
const longestReason = 500

// Reason says why something failed without a text that may hold a value, a body or a host: the operations and codes of err's chain, outermost first;
// what a type in it says of itself by implementing [slog.LogValuer], which then speaks for all that it wraps, as postgres.Diagnose's does for a server's
// error; and of anything else its Go type, with the SQLSTATE of a type that has one. The branches of a joined error are divided by semicolons. It has
// 500 bytes at most, and is "" for nil. It is for logs and operators, not for clients: it may name tables and constraints.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	why, coded := explain(err)
	if code := CodeOf(err); !coded && code != Internal { // of what a LogValuer wraps
		why = code.String() + ": " + why
	}
	return line(why)
}

// line makes text fit for a line of a log.
func line(text string) string {
	s := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(s) > longestReason {
		const more = "…"
		return strings.ToValidUTF8(s[:longestReason-len(more)], "") + more
	}
	return s
}

// explain returns the reason of a part of a chain, and whether a code is in it.
func explain(err error) (why string, coded bool) {
	switch e := err.(type) { //nolint:errorlint // it goes down the chain itself
	case *Error:
		why = e.Code.String()
		if op := e.op(); op != "" {
			why = op + ": " + why
		}
		if e.Err != nil && e.Err != error(e.Code) { //nolint:errorlint // the very same code says no more
			if cause, _ := explain(e.Err); cause != saysNothing || e.Code.get() == Internal.get() {
				why += ": " + cause
			}
		}
		return why, true
	case Code:
		return e.String(), true
	case *textError:
		return e.explain()
	case slog.LogValuer:
		return said(slog.AnyValue(e).Resolve()), false
	case runtime.Error: // made by the runtime out of types, indexes and lengths
		return e.Error(), false
	case syscall.Errno:
		return e.Error(), false
	case interface{ Unwrap() []error }:
		var all []string
		for _, branch := range e.Unwrap() {
			w, c := explain(branch)
			all, coded = append(all, w), coded || c
		}
		if len(all) > 0 {
			return strings.Join(all, "; "), coded
		}
	case interface{ Unwrap() error }:
		if next := e.Unwrap(); next != nil {
			why, coded = explain(next)
			if t := fmt.Sprintf("%T", err); why == saysNothing && t != "*fmt.wrapError" {
				why = t
			}
			return why, coded
		}
	}
	if e, ok := err.(interface{ SQLState() string }); ok && isSQLState(e.SQLState()) {
		return fmt.Sprintf("sqlstate=%s (%T)", e.SQLState(), err), false
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF} {
		if err == known { //nolint:errorlint // its own text, and not that of what wraps it
			return known.Error(), false
		}
	}
	return fmt.Sprintf("%T", err), false
}

// saysNothing is the type of what errors.New makes.
const saysNothing = "*errors.errorString"

func isSQLState(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(s) == 5
}

// said writes what a LogValuer answered in one line. Of what has no text but its own methods', such as an error, only the type is told.
func said(v slog.Value) string {
	switch v.Kind() {
	case slog.KindGroup:
		var all []string
		for _, a := range v.Group() {
			all = append(all, a.Key+"="+said(a.Value.Resolve()))
		}
		return strings.Join(all, " ")
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			why, _ := explain(err)
			return why
		}
		return fmt.Sprintf("%T", v.Any())
	default:
		return v.String()
	}
}

// op is the Op where it looks like one: anything else there could be a value.
func (e *Error) op() string {
	for i := range len(e.Op) {
		c := e.Op[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_./()*-", rune(c)) {
			return ""
		}
	}
	if len(e.Op) > 80 {
		return ""
	}
	return e.Op
}

// Text is an error whose own text a log may have, since it is written in the source: besides constant words it holds no more than numbers and names of
// types.
type Text string //nolint:errname // it is read as a word: fault.Text("the queue is closed")

// Error returns the text.
func (t Text) Error() string { return string(t) }

// LogValue makes an error log as its text.
func (t Text) LogValue() slog.Value { return slog.StringValue(string(t)) }

// Textf is [fmt.Errorf] for an error whose own text a log may have, as a [Text]'s: the arguments are numbers, and names that the source, the schema or
// the configuration gives. Of errors among them, wrapped or not, the log gets the reason.
func Textf(format string, a ...any) error {
	return &textError{fmt.Errorf(format, a...), format, a}
}

type textError struct {
	error
	format string
	args   []any
}

func (e *textError) Unwrap() error { return e.error }

// LogValue makes an error log as its text, with the reasons of what it wraps.
func (e *textError) LogValue() slog.Value {
	why, _ := e.explain()
	return slog.StringValue(line(why))
}

func (e *textError) explain() (why string, coded bool) {
	args := slices.Clone(e.args)
	for i, a := range args {
		if err, ok := a.(error); ok {
			w, c := explain(err)
			args[i], coded = Text(w), coded || c
		}
	}
	return fmt.Errorf(e.format, args...).Error(), coded
}
