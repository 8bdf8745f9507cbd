package outbox

import (
	"context"
	"fmt"
	"maps"

	"go.opentelemetry.io/otel/trace"
)

// traceHeaders returns the trace context of ctx as W3C Trace Context, level 1, writes it; nil where there is none.
func traceHeaders(ctx context.Context) map[string]string {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return nil
	}
	// Of the flags only "sampled" is known to the standard.
	h := map[string]string{"traceparent": fmt.Sprintf("00-%s-%s-%s", sc.TraceID(), sc.SpanID(), sc.TraceFlags()&trace.FlagsSampled)}
	if state := sc.TraceState().String(); state != "" {
		h["tracestate"] = state
	}
	return h
}

// withTrace returns a copy of headers with those of the trace, unless the caller gave an event a trace of its own.
func withTrace(headers, trace map[string]string) map[string]string {
	out := make(map[string]string, len(headers)+len(trace))
	if _, own := headers["traceparent"]; !own {
		maps.Copy(out, trace)
	}
	maps.Copy(out, headers)
	return out
}
