package outbox

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Reasons of a failed delivery, as the metric's label.
const (
	reasonError      = "error"
	reasonTimeout    = "timeout"
	reasonPanic      = "panic"
	reasonBrokerDown = "broker_down"
	reasonGap        = "gap"
)

type metrics struct {
	published, failures, lost metric.Int64Counter
	claim                     metric.Float64Histogram
}

func newMetrics(p metric.MeterProvider) (m metrics, err error) {
	if p == nil {
		p = noop.NewMeterProvider()
	}
	meter := p.Meter("caskeleton.dev/outbox")
	var errs [4]error
	m.published, errs[0] = meter.Int64Counter("outbox.published", metric.WithUnit("{event}"), metric.WithDescription("Events that the broker named as stored."))
	m.failures, errs[1] = meter.Int64Counter("outbox.failed", metric.WithUnit("{run}"), metric.WithDescription("Runs that were not stored to their end, by reason."))
	m.lost, errs[2] = meter.Int64Counter("outbox.lease.lost", metric.WithUnit("{lease}"), metric.WithDescription("Claims that were lost before they were settled."))
	m.claim, errs[3] = meter.Float64Histogram("outbox.claim.duration", metric.WithUnit("s"), metric.WithDescription("Time that a claim took, failed ones included."))
	return m, errors.Join(errs[:]...)
}

func (m metrics) failed(ctx context.Context, reason string) {
	m.failures.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
}

func (m metrics) claimed(ctx context.Context, took time.Duration) {
	m.claim.Record(ctx, took.Seconds())
}
