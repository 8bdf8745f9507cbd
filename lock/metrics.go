package lock

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"caskeleton.dev/fault"
)

type metrics struct {
	acquisition, expired metric.Int64Counter
	wait                 metric.Float64Histogram
	held                 metric.Int64UpDownCounter
}

func newMetrics(p metric.MeterProvider) (m metrics, err error) {
	if p == nil {
		p = noop.NewMeterProvider()
	}
	meter := p.Meter("caskeleton.dev/lock")
	var errs [4]error
	m.acquisition, errs[0] = meter.Int64Counter("lock.acquisition", metric.WithUnit("{acquisition}"), metric.WithDescription("Calls of Acquire, by outcome."))
	m.expired, errs[1] = meter.Int64Counter("lock.lease.expired", metric.WithUnit("{lease}"), metric.WithDescription("Leases that had passed before their holder gave them back."))
	m.wait, errs[2] = meter.Float64Histogram("lock.wait.duration", metric.WithUnit("s"), metric.WithDescription("Time that Acquire took, whatever its outcome."))
	m.held, errs[3] = meter.Int64UpDownCounter("lock.held", metric.WithUnit("{lease}"), metric.WithDescription("Leases that this process holds."))
	return m, errors.Join(errs[:]...)
}

// acquired counts one call of Acquire.
func (m metrics) acquired(ctx context.Context, err error, took time.Duration) {
	outcome := "error"
	switch {
	case err == nil:
		outcome = "acquired"
	case errors.Is(err, fault.LockAcquisitionTimeout):
		outcome = "timeout"
	case ctx.Err() != nil:
		outcome = "canceled"
	}
	m.acquisition.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
	m.wait.Record(ctx, took.Seconds())
}
