package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"caskeleton.dev/fault"
	"caskeleton.dev/reqctx"
)

func loggerOr(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.Default()
	}
	return log
}

// logError writes the one line in which the cause appears: at error level with the operator's hint for a 5xx, else at info.
func logError(r *http.Request, log *slog.Logger, err error) {
	code, status := fault.CodeOf(err), fault.StatusOf(err)
	attrs := []slog.Attr{
		slog.String("code", code.String()),
		slog.Int("status", status),
		slog.String("request_id", reqctx.RequestID(r.Context())),
	}
	e, _ := errors.AsType[*fault.Error](err)
	if e != nil && e.Op != "" {
		attrs = append(attrs, slog.String("op", e.Op))
	}
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelError
		attrs = append(attrs, slog.String("hint", code.Hint()))
	}
	if c := cause(err, e, status); c != "" {
		attrs = append(attrs, slog.String("cause", c))
	}
	loggerOr(log).LogAttrs(r.Context(), level, "request failed", attrs...)
}

// cause is err's text, which adapters keep free of values. A refusal of fields is left out: its text repeats names that the caller chose.
func cause(err error, e *fault.Error, status int) string {
	switch {
	case err == nil:
		return "WriteProblem was called without an error"
	case status < http.StatusInternalServerError && fault.FieldsOf(err) != nil:
		return ""
	case e == nil || error(e) != err: //nolint:errorlint // asks whether e is all of err
		return text(err)
	case e.Err != nil:
		return text(e.Err)
	}
	return ""
}

// text is err's, unless it repeats what a server said to a driver that no adapter stands before: that quotes values.
func text(err error) string {
	raw, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if !ok || !strings.Contains(err.Error(), raw.Error()) {
		return err.Error()
	}
	return fmt.Sprintf("SQLSTATE %s (%T, whose text may hold values and is left out; pass it through postgres.Diagnose)", raw.SQLState(), raw)
}

func logGone(r *http.Request, log *slog.Logger) {
	loggerOr(log).LogAttrs(r.Context(), slog.LevelDebug, "caller went away", slog.String("request_id", reqctx.RequestID(r.Context())))
}
