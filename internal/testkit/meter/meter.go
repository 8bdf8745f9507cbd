// Package meter adds up what is recorded, for tests of metrics.
package meter

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Meter is a MeterProvider with one meter. It has counters, up-down counters and histograms; all else records nothing. Safe for concurrent use.
type Meter struct {
	noop.MeterProvider

	label string
	mu    sync.Mutex
	sums  map[string]float64
}

// New returns a meter that keeps the values of one label apart.
func New(label string) *Meter { return &Meter{label: label, sums: map[string]float64{}} }

// Sums returns what is not zero, by the name of the instrument and, behind a space, the value of the label, if it has one. A histogram has a "count"
// and a "sum" in the place of that.
func (m *Meter) Sums() map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	sums := map[string]float64{}
	for name, v := range m.sums {
		if v != 0 {
			sums[name] = v
		}
	}
	return sums
}

// Get returns one of the Sums, of whole numbers.
func (m *Meter) Get(name string) int { return int(m.Sums()[name]) }

func (m *Meter) add(name string, v float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sums[name] += v
}

// Meter implements [metric.MeterProvider].
func (m *Meter) Meter(string, ...metric.MeterOption) metric.Meter { return instruments{m: m} }

type instruments struct {
	noop.Meter

	m *Meter
}

func (i instruments) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counter{name: name, m: i.m}, nil
}

func (i instruments) Int64UpDownCounter(name string, _ ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return upDown{name: name, m: i.m}, nil
}

func (i instruments) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return histogram{name: name, m: i.m}, nil
}

type counter struct {
	noop.Int64Counter

	name string
	m    *Meter
}

func (c counter) Add(_ context.Context, n int64, o ...metric.AddOption) {
	name := c.name
	set := metric.NewAddConfig(o).Attributes()
	if v, ok := set.Value(attribute.Key(c.m.label)); ok {
		name += " " + v.AsString()
	}
	c.m.add(name, float64(n))
}

type upDown struct {
	noop.Int64UpDownCounter

	name string
	m    *Meter
}

func (u upDown) Add(_ context.Context, n int64, _ ...metric.AddOption) { u.m.add(u.name, float64(n)) }

type histogram struct {
	noop.Float64Histogram

	name string
	m    *Meter
}

func (h histogram) Record(_ context.Context, v float64, _ ...metric.RecordOption) {
	h.m.add(h.name+" count", 1)
	h.m.add(h.name+" sum", v)
}
