package idempotency_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/testkit/meter"
	"caskeleton.dev/tx"
)

func TestMetrics(t *testing.T) {
	s, m, runs := newStore(), meter.New("outcome"), 0
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
	require.Equal(t, map[string]float64{
		"idempotency.claim claimed": 2, "idempotency.claim in_progress": 1, "idempotency.claim taken_over": 1, "idempotency.claim replayed": 1,
		"idempotency.claim reused": 1, "idempotency.claim abandoned": 1, "idempotency.replay": 1, "idempotency.abandoned": 1,
	}, m.Sums())
}
