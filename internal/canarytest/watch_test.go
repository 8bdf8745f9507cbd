package canarytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelmetric "go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"
)

const (
	// canary stands for a value, a secret, a host or what somebody else said: nothing may tell it.
	canary = "c4nary"
	// named stands for the name of a schema, a table, a column or a constraint: only the log may tell it.
	named = "n4med"
)

// watch is all that can be seen of the kit from outside. Tests with one do not run side by side, since spans have one provider in a process.
type watch struct {
	lines     lines
	log       *slog.Logger
	reader    *metric.ManualReader
	meter     otelmetric.MeterProvider
	spans     *tracetest.SpanRecorder
	parent    oteltrace.Span
	ctx       context.Context //nolint:containedctx // of the program's own span, within which all happens
	responses []string
	dsn       string // of the last database opened
}

func newWatch(t *testing.T) *watch {
	t.Helper()
	w := &watch{reader: metric.NewManualReader(), spans: tracetest.NewSpanRecorder()}
	w.log = slog.New(slog.NewJSONHandler(&w.lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.meter = metric.NewMeterProvider(metric.WithReader(w.reader))
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(w.spans), trace.WithSampler(trace.AlwaysSample()))
	otel.SetTracerProvider(tracer)
	otel.SetMeterProvider(w.meter)
	former := slog.Default()
	slog.SetDefault(w.log) // for what was given no logger
	t.Cleanup(func() { slog.SetDefault(former) })
	w.ctx, w.parent = tracer.Tracer("program").Start(t.Context(), "program")
	return w
}

// heard notes a response as its client gets it.
func (w *watch) heard(t *testing.T, res *http.Response) {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	w.responses = append(w.responses, fmt.Sprint(res.Status, res.Header)+string(body))
}

// told lists where anything was told that must not be.
func (w *watch) told(t *testing.T) []string {
	t.Helper()
	var all []string
	look := func(where, text string, words ...string) {
		for _, word := range words {
			for line := range strings.SplitSeq(text, "\n") {
				if strings.Contains(strings.ToLower(line), word) {
					all = append(all, where+": "+line)
				}
			}
		}
	}
	look("log", w.lines.String(), canary)
	for _, r := range w.responses {
		look("response", r, canary, named)
	}
	for _, s := range w.spans.Started() {
		ours := s.SpanContext().SpanID() == w.parent.SpanContext().SpanID()
		if !ours || len(s.Attributes()) > 0 || len(s.Events()) > 0 || s.Status().Description != "" {
			all = append(all, fmt.Sprintf("span: %q with %v %v %v, and the kit makes none", s.Name(), s.Attributes(), s.Events(), s.Status()))
		}
	}
	look("metric", w.metrics(t), canary, named)
	return all
}

// metrics are all names, attributes and values, as text.
func (w *watch) metrics(t *testing.T) string {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, w.reader.Collect(context.WithoutCancel(t.Context()), &data))
	text, err := json.Marshal(data.ScopeMetrics)
	require.NoError(t, err)
	return string(text) + fmt.Sprintf("%+v", data.ScopeMetrics)
}

// silent fails where anything was told, or where nothing at all was said: the log has to hold each of says.
func (w *watch) silent(t *testing.T, says ...string) {
	t.Helper()
	require.Empty(t, w.told(t))
	for _, s := range says {
		require.Contains(t, w.lines.String(), s, "whoever has to find the cause learns nothing")
	}
}

func (w *watch) says(text string) bool { return strings.Contains(w.lines.String(), text) }

// lines is a log that several goroutines write.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A watch that sees nothing proves nothing.
func TestTheWatchNotices(t *testing.T) {
	for where, leak := range map[string]func(w *watch){
		"log":      func(w *watch) { w.log.Debug("failed", "error", strings.ToUpper(canary)) },
		"response": func(w *watch) { w.responses = append(w.responses, "409 "+named) },
		"span":     func(w *watch) { w.parent.RecordError(io.EOF) },
		"span of its own": func(w *watch) {
			_, s := otel.Tracer("kit").Start(w.ctx, "tx")
			s.End()
		},
		"metric":           func(w *watch) { count(w, "failures", attribute.String("constraint", named)) },
		"name of a metric": func(w *watch) { count(w, canary) },
	} {
		w := newWatch(t)
		require.Empty(t, w.told(t))
		leak(w)
		require.Len(t, w.told(t), 1, where)
	}
}

func count(w *watch, name string, of ...attribute.KeyValue) {
	c, _ := w.meter.Meter("kit").Int64Counter(name)
	c.Add(w.ctx, 1, otelmetric.WithAttributes(of...))
}
