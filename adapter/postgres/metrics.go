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
	pool      attribute.KeyValue
	acquire   metric.Float64Histogram
	exhausted metric.Int64Counter
	gauges    metric.Registration
}

func meterOf(p metric.MeterProvider) metric.Meter {
	if p == nil {
		p = noop.NewMeterProvider()
	}
	return p.Meter("caskeleton.dev/adapter/postgres")
}

// newMetrics makes the instruments of the pool with that name.
func newMetrics(p metric.MeterProvider, pool string, stat func() *pgxpool.Stat) (*metrics, error) {
	meter := meterOf(p)
	m := &metrics{pool: attribute.String("pool", pool)}
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
			o.ObserveInt64(conns, int64(g.n), metric.WithAttributes(m.pool, attribute.String("state", g.state)))
		}
		return nil
	}, conns)
	return m, err
}

func (m *metrics) waited(ctx context.Context, d time.Duration) {
	m.acquire.Record(ctx, d.Seconds(), metric.WithAttributes(m.pool))
}

func (m *metrics) wasExhausted(ctx context.Context) {
	m.exhausted.Add(context.WithoutCancel(ctx), 1, metric.WithAttributes(m.pool))
}

// newLagGauge reports the lag that state returns, and nothing while it is not known.
func newLagGauge(p metric.MeterProvider, state func() *ReplicaState) (metric.Registration, error) {
	meter := meterOf(p)
	lag, err := meter.Float64ObservableGauge("db.replica.lag", metric.WithUnit("s"),
		metric.WithDescription("How far the read replica is behind; 0 where it has replayed all that it has received, and still receives."))
	if err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		if s := state(); s.Lag >= 0 {
			o.ObserveFloat64(lag, s.Lag.Seconds())
		}
		return nil
	}, lag)
}
