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

// How an Acquire can end.
const (
	acquired = "acquired"
	timeout  = "timeout"
	stopped  = "canceled"
	failed   = "error"
)

type metrics struct {
	acquisition, expired metric.Int64Counter
	wait                 metric.Float64Histogram
	held                 metric.Int64UpDownCounter
	outcomes             map[string]metric.AddOption // made once: the fast path adds one each time
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
	m.outcomes = map[string]metric.AddOption{}
	for _, o := range []string{acquired, timeout, stopped, failed} {
		m.outcomes[o] = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", o)))
	}
	return m, errors.Join(errs[:]...)
}

// counted counts one call of Acquire.
func (m metrics) counted(ctx context.Context, err error, took time.Duration) {
	outcome := failed
	switch {
	case err == nil:
		outcome = acquired
	case errors.Is(err, fault.LockAcquisitionTimeout):
		outcome = timeout
	case ctx.Err() != nil:
		outcome = stopped
	}
	m.acquisition.Add(ctx, 1, m.outcomes[outcome])
	m.wait.Record(ctx, took.Seconds())
}
