package natsbroker_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/inbox"
)

// lagMeter is a whole MeterProvider that keeps the last value of its one gauge.
type lagMeter struct {
	noop.MeterProvider
	last     atomic.Int64
	consumer atomic.Value
}

func (m *lagMeter) Meter(string, ...metric.MeterOption) metric.Meter { return lagInstruments{m: m} }

type lagInstruments struct {
	noop.Meter
	m *lagMeter
}

func (i lagInstruments) Int64Gauge(string, ...metric.Int64GaugeOption) (metric.Int64Gauge, error) {
	return lagGauge{m: i.m}, nil
}

type lagGauge struct {
	noop.Int64Gauge
	m *lagMeter
}

func (g lagGauge) Record(_ context.Context, v int64, o ...metric.RecordOption) {
	set := metric.NewRecordConfig(o).Attributes()
	name, _ := set.Value(attribute.Key("consumer"))
	g.m.consumer.Store(name.AsString())
	g.m.last.Store(v)
}

func TestTheLagIsWhatIsNotAcknowledged(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	publishAll(t.Context(), t, publisher(t, s), events("a", 1, 7))
	m := &lagMeter{}
	release := make(chan struct{})
	consume(t, s, func(context.Context, inbox.Message) (inbox.Outcome, error) {
		<-release
		return inbox.Handled, nil
	}, natsbroker.ConsumerOptions{Meter: m})
	t.Cleanup(func() { close(release) })
	require.Eventually(t, func() bool { return m.last.Load() == 7 }, soon, tick)
	require.Equal(t, consumerName, m.consumer.Load())
}
