package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/reqctx"
)

// Wrap puts around next what every request needs:
//
//   - an id: the caller's X-Request-Id where it is 1 to 128 characters of [A-Za-z0-9._-], else a random one; in the answer's
//     X-Request-Id, in [reqctx.RequestID] and in every log line;
//   - headers that tell browsers neither to guess a content type (nosniff) nor to load or run anything (Content-Security-Policy); a
//     handler that serves pages replaces the latter;
//   - one access line at info level: method, route pattern, status, bytes, duration, request id and the problem's code;
//   - recovery: a panic becomes a 500 where nothing is written yet, else the connection is aborted. The log gets the panic's type and
//     stack, not its value, which may hold what the caller sent. [http.ErrAbortHandler] passes.
//
// A nil log means slog.Default().
func Wrap(next http.Handler, log *slog.Logger) http.Handler {
	log = loggerOr(log)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		id := requestID(r)
		r = r.WithContext(reqctx.WithRequestID(r.Context(), id))
		h := w.Header()
		h.Set(requestIDHeader, id)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")

		t := &tracker{ResponseWriter: w}
		defer func() {
			v := recover()
			abort := v == http.ErrAbortHandler //nolint:errorlint // compared as net/http does
			if v != nil && !abort {
				abort = recovered(t, r, log, v)
			}
			logAccess(r.Context(), log, t, r.Method, time.Since(start), abort)
			if abort {
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(t, r)
	})
}

// recovered answers for a handler that panicked, and reports whether the connection must be aborted instead.
func recovered(t *tracker, r *http.Request, log *slog.Logger, v any) (abort bool) {
	attrs := []slog.Attr{
		slog.String("code", fault.Internal.String()),
		slog.String("request_id", reqctx.RequestID(r.Context())),
		slog.String("route", t.route),
		slog.String("panic_type", fmt.Sprintf("%T", v)),
		slog.String("stack", string(debug.Stack())),
	}
	if e, ok := v.(runtime.Error); ok { // made by the runtime out of types, indexes and lengths
		attrs = append(attrs, slog.String("error", fault.Reason(e)))
	}
	log.LogAttrs(r.Context(), slog.LevelError, "handler panicked", attrs...)
	t.code = fault.Internal.String()
	if t.started() {
		return true
	}
	NewProblem(r.Context(), fault.Internal).write(t, r)
	return false
}

func logAccess(ctx context.Context, log *slog.Logger, t *tracker, method string, took time.Duration, aborted bool) {
	level := slog.LevelInfo
	if t.quiet {
		level = slog.LevelDebug
	}
	if !log.Enabled(ctx, level) {
		return
	}
	status := t.status
	if status == 0 && !aborted {
		status = http.StatusOK // what net/http sends for a handler that wrote nothing
	}
	attrs := []slog.Attr{
		slog.String("method", knownMethod(method)),
		slog.String("route", t.route),
		slog.Int("status", status),
		slog.Int64("bytes", t.bytes),
		slog.Duration("duration", took),
		slog.String("request_id", reqctx.RequestID(ctx)),
	}
	if t.code != "" {
		attrs = append(attrs, slog.String("code", t.code))
	}
	if aborted {
		attrs = append(attrs, slog.Bool("aborted", true))
	}
	log.LogAttrs(ctx, level, "request", attrs...)
}

// knownMethod keeps what a caller can make up out of the log.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	}
	return "OTHER"
}
