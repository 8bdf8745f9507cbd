package idempotency_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// meter adds up what is counted, by instrument and outcome.
type meter struct {
	noop.MeterProvider
	sums map[string]int64
}

func newMeter() *meter { return &meter{sums: map[string]int64{}} }

func (m *meter) Meter(string, ...metric.MeterOption) metric.Meter { return recording{sums: m.sums} }

type recording struct {
	noop.Meter
	sums map[string]int64
}

func (r recording) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counter{name: name, sums: r.sums}, nil
}

type counter struct {
	noop.Int64Counter
	name string
	sums map[string]int64
}

func (c counter) Add(_ context.Context, n int64, o ...metric.AddOption) {
	set := metric.NewAddConfig(o).Attributes()
	if v, ok := set.Value("outcome"); ok {
		c.sums[c.name+" "+v.AsString()] += n
		return
	}
	if n != 0 {
		c.sums[c.name] += n
	}
}

func TestMetrics(t *testing.T) {
	s, m, runs := newStore(), newMeter(), 0
	g, _ := newGuard(t, s, &idempotency.Options{Meter: m})
	do := func(fp idempotency.Fingerprint, fn func(context.Context, *tx.Tx) (string, error)) error {
		_, err := idempotency.Do(t.Context(), g, key, fp, fn)
		return err
	}
	require.ErrorIs(t, do(fp, func(context.Context, *tx.Tx) (string, error) { // claimed
		require.ErrorIs(t, do(fp, nil), fault.IdempotencyInProgress)
		s.failing["release"], s.failErr = 1, fault.DBUnavailable
		return "", errBoom
	}), errBoom)
	s.expired = true
	require.NoError(t, do(fp, answer(&runs, "x"))) // taken over
	require.NoError(t, do(fp, nil))                // replayed
	require.ErrorIs(t, do(idempotency.Fingerprint{}, nil), fault.IdempotencyKeyReused)
	other := key
	other.Client = "other"
	_, err := idempotency.DoExternal(t.Context(), g, other, fp, gives(&runs, "", errBoom)) // claimed, and abandoned
	require.ErrorIs(t, err, errBoom)
	_, err = idempotency.DoExternal(t.Context(), g, other, fp, gives(&runs, "", nil))
	require.ErrorIs(t, err, fault.IdempotencyAbandoned)
	require.Equal(t, map[string]int64{
		"idempotency.claim claimed": 2, "idempotency.claim in_progress": 1, "idempotency.claim taken_over": 1, "idempotency.claim replayed": 1,
		"idempotency.claim reused": 1, "idempotency.claim abandoned": 1, "idempotency.replay": 1, "idempotency.abandoned": 1,
	}, m.sums)
}
