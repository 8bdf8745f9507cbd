package httpapi

import (
	"log/slog"
	"net/http"

	"caskeleton.dev/fault"
	"caskeleton.dev/reqctx"
)

func loggerOr(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.Default()
	}
	return log
}

// logError writes the one line that tells of the cause: at error level with the operator's hint for a 5xx, else at info.
func logError(r *http.Request, log *slog.Logger, err error) {
	code, status := fault.CodeOf(err), fault.StatusOf(err)
	attrs := []slog.Attr{
		slog.String("code", code.String()),
		slog.Int("status", status),
		slog.String("request_id", reqctx.RequestID(r.Context())),
	}
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelError
		attrs = append(attrs, slog.String("hint", code.Hint()))
	}
	why := fault.Reason(err)
	if err == nil {
		why = "WriteProblem was called without an error"
	}
	attrs = append(attrs, slog.String("error", why))
	loggerOr(log).LogAttrs(r.Context(), level, "request failed", attrs...)
}

func logGone(r *http.Request, log *slog.Logger) {
	loggerOr(log).LogAttrs(r.Context(), slog.LevelDebug, "caller went away", slog.String("request_id", reqctx.RequestID(r.Context())))
}
