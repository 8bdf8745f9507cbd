package inbox

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

type metrics struct {
	handled, duplicate, recoveryRequired metric.Int64Counter
}

func newMetrics(p metric.MeterProvider) (metrics, error) {
	if p == nil {
		p = noop.NewMeterProvider()
	}
	meter := p.Meter("caskeleton.dev/inbox")
	handled, err1 := meter.Int64Counter("inbox.handled", metric.WithUnit("{delivery}"), metric.WithDescription("Deliveries, by outcome."))
	duplicate, err2 := meter.Int64Counter("inbox.duplicate", metric.WithUnit("{delivery}"),
		metric.WithDescription("Deliveries of messages that had taken effect before."))
	recovery, err3 := meter.Int64Counter("inbox.recovery_required", metric.WithUnit("{message}"),
		metric.WithDescription("Messages parked for an operator."))
	return metrics{handled, duplicate, recovery}, errors.Join(err1, err2, err3)
}

func (m metrics) count(ctx context.Context, o Outcome) {
	m.handled.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", o.String())))
	if o == Duplicate {
		m.duplicate.Add(ctx, 1)
	}
}
