package idempotency

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Outcomes of a claim, as the metric's label.
const (
	outcomeClaimed    = "claimed"
	outcomeTakenOver  = "taken_over"
	outcomeReplayed   = "replayed"
	outcomeInProgress = "in_progress"
	outcomeReused     = "reused"
	outcomeAbandoned  = "abandoned"
	outcomeError      = "error"
)

type metrics struct {
	claim, replay, abandoned, reaped metric.Int64Counter
}

func newMetrics(p metric.MeterProvider) (metrics, error) {
	if p == nil {
		p = noop.NewMeterProvider()
	}
	meter := p.Meter("caskeleton.dev/idempotency")
	claim, err1 := meter.Int64Counter("idempotency.claim", metric.WithUnit("{claim}"), metric.WithDescription("Claims of idempotency keys, by outcome."))
	replay, err2 := meter.Int64Counter("idempotency.replay", metric.WithUnit("{replay}"), metric.WithDescription("Answers given from the store."))
	abandoned, err3 := meter.Int64Counter("idempotency.abandoned", metric.WithUnit("{record}"), metric.WithDescription("Operations outside the database that were found interrupted."))
	reaped, err4 := meter.Int64Counter("idempotency.reaped", metric.WithUnit("{record}"), metric.WithDescription("Expired records that were deleted."))
	return metrics{claim, replay, abandoned, reaped}, errors.Join(err1, err2, err3, err4)
}

func (m metrics) claimed(ctx context.Context, outcome string) {
	m.claim.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
	if outcome == outcomeReplayed {
		m.replay.Add(ctx, 1)
	}
}
