package natsbroker

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// lagEvery is how often the broker is asked. A scrape never asks it.
const lagEvery = 15 * time.Second

// lag records how many messages a consumer has not acknowledged.
type lag struct {
	gauge metric.Int64Gauge
	with  metric.MeasurementOption
}

func newLag(p metric.MeterProvider, consumer string) (lag, error) {
	if p == nil {
		p = noop.NewMeterProvider()
	}
	gauge, err := p.Meter("caskeleton.dev/adapter/broker/natsbroker").Int64Gauge("inbox.lag", metric.WithUnit("{message}"),
		metric.WithDescription("Messages that a consumer has not acknowledged."))
	return lag{gauge: gauge, with: metric.WithAttributes(attribute.String("consumer", consumer))}, err
}

// watch records until ctx is done.
func (l lag) watch(ctx context.Context, cons jetstream.Consumer, conn *Conn) {
	tick := time.NewTicker(lagEvery)
	defer tick.Stop()
	for {
		l.record(ctx, cons, conn)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (l lag) record(ctx context.Context, cons jetstream.Consumer, conn *Conn) {
	ctx, cancel := conn.bounded(ctx)
	defer cancel()
	if info, err := cons.Info(ctx); err == nil {
		l.gauge.Record(ctx, int64(info.NumPending)+int64(info.NumAckPending), l.with) //nolint:gosec // counts of messages
	}
}
