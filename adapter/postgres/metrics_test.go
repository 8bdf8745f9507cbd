package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// meter keeps what is recorded; it is a whole MeterProvider with one meter.
type meter struct {
	noop.MeterProvider
	waits     []float64
	exhausted int64
	observe   metric.Callback
	lag       metric.Callback // of the replica
}

func (m *meter) Meter(string, ...metric.MeterOption) metric.Meter { return recording{m: m} }

type recording struct {
	noop.Meter
	m *meter
}

func (r recording) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return histogram{m: r.m}, nil
}

func (r recording) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counter{m: r.m}, nil
}

func (r recording) RegisterCallback(f metric.Callback, of ...metric.Observable) (metric.Registration, error) {
	if _, ok := of[0].(metric.Float64Observable); ok {
		r.m.lag = f
		return noop.Registration{}, nil
	}
	r.m.observe = f
	return registration{m: r.m}, nil
}

type histogram struct {
	noop.Float64Histogram
	m *meter
}

func (h histogram) Record(_ context.Context, v float64, _ ...metric.RecordOption) {
	h.m.waits = append(h.m.waits, v)
}

type counter struct {
	noop.Int64Counter
	m *meter
}

func (c counter) Add(_ context.Context, n int64, _ ...metric.AddOption) { c.m.exhausted += n }

type registration struct {
	noop.Registration
	m *meter
}

func (r registration) Unregister() error { r.m.observe = nil; return nil }

type states struct {
	noop.Observer
	seen map[string]int64
}

func (s states) ObserveInt64(_ metric.Int64Observable, v int64, o ...metric.ObserveOption) {
	set := metric.NewObserveConfig(o).Attributes()
	state, _ := set.Value("state")
	s.seen[state.AsString()] = v
}

func TestMetrics(t *testing.T) {
	m := &meter{}
	db, err := postgres.Open(t.Context(), postgres.Config{DSN: pgtest.DSN(t), MaxConns: 1, AcquireTimeout: 2 * time.Second}, &postgres.Options{Meter: m})
	require.NoError(t, err)
	closeAtEnd(t, db)
	c := begin(t, db, tx.BeginOptions{})
	_, err = db.Exec(t.Context(), "select 1")
	require.ErrorIs(t, err, fault.DBPoolExhausted)

	require.Len(t, m.waits, 3, "Open, Begin and the one that failed")
	require.GreaterOrEqual(t, m.waits[2], 2.0, "a wait that failed counts for as long as it lasted, in seconds")
	require.EqualValues(t, 1, m.exhausted)
	s := states{seen: map[string]int64{}}
	require.NoError(t, m.observe(t.Context(), s))
	require.Equal(t, map[string]int64{"acquired": 1, "idle": 0, "constructing": 0, "max": 1}, s.seen)

	require.NoError(t, c.Rollback(t.Context()))
	require.NoError(t, db.Close(t.Context()))
	require.Nil(t, m.observe, "a closed pool reports nothing")
	require.NoError(t, db.Close(t.Context()))
}
