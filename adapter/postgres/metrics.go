package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// metrics are the pool's instruments.
type metrics struct {
	acquire   metric.Float64Histogram
	exhausted metric.Int64Counter
	gauges    metric.Registration
}

func newMetrics(p metric.MeterProvider, stat func() *pgxpool.Stat) (*metrics, error) {
	if p == nil {
		p = noop.NewMeterProvider()
	}
	meter := p.Meter("caskeleton.dev/adapter/postgres")
	m := &metrics{}
	var err error
	if m.acquire, err = meter.Float64Histogram("db.pool.acquire", metric.WithUnit("s"),
		metric.WithDescription("Time to get a connection from the pool, whether it was got or not."),
		metric.WithExplicitBucketBoundaries(0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10)); err != nil {
		return nil, err
	}
	if m.exhausted, err = meter.Int64Counter("db.pool.exhausted", metric.WithUnit("{acquire}"),
		metric.WithDescription("Acquires that ended with DB_POOL_EXHAUSTED.")); err != nil {
		return nil, err
	}
	conns, err := meter.Int64ObservableGauge("db.pool.connections", metric.WithUnit("{connection}"),
		metric.WithDescription("Connections by state; max is the pool's limit."))
	if err != nil {
		return nil, err
	}
	m.gauges, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := stat()
		for _, g := range []struct {
			state string
			n     int32
		}{{"acquired", s.AcquiredConns()}, {"idle", s.IdleConns()}, {"constructing", s.ConstructingConns()}, {"max", s.MaxConns()}} {
			o.ObserveInt64(conns, int64(g.n), metric.WithAttributes(attribute.String("state", g.state)))
		}
		return nil
	}, conns)
	return m, err
}

func (m *metrics) waited(ctx context.Context, d time.Duration) { m.acquire.Record(ctx, d.Seconds()) }
