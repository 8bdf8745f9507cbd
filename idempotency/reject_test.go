package idempotency_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/testkit/meter"
	"caskeleton.dev/tx"
)

func TestARefusalIsStoredAlthoughTheCallerHasLeft(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, nil)
	ctx, leave := context.WithCancel(t.Context())
	_, err := idempotency.Do(ctx, g, key, fp, func(context.Context, *tx.Tx) (string, error) {
		leave()
		return "sold out", idempotency.ErrRejected
	})
	require.NoError(t, err)
	out, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, "again"))
	require.NoError(t, err)
	require.Equal(t, idempotency.Outcome[string]{Value: "sold out", Replayed: true, Rejected: true}, out)
	require.Zero(t, runs)
}

// A refusal that is too large to be stored is not given, and leaves the key to the next one at once.
func TestARefusalThatIsTooLargeGivesTheKeyBack(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, &idempotency.Options{InlineLimit: 5, AnswerLimit: 10})
	_, err := idempotency.Do(t.Context(), g, key, fp, func(context.Context, *tx.Tx) (string, error) {
		return strings.Repeat("x", 10), idempotency.ErrRejected
	})
	require.ErrorIs(t, err, idempotency.ErrAnswerTooLarge)
	require.Empty(t, s.rows)
	_, err = idempotency.Do(t.Context(), g, key, fp, answer(&runs, "x"))
	require.NoError(t, err)
	require.Equal(t, 1, runs)
}

func TestADuplicateThatFindsAnInterruptedOneCountsIt(t *testing.T) {
	s, m := newStore(), meter.New("outcome")
	g, _ := newGuard(t, s, &idempotency.Options{Meter: m})
	_, err := idempotency.DoExternal(t.Context(), g, key, fp, func(ctx context.Context, _ *idempotency.Execution) (string, error) {
		s.expired = true
		for range 2 {
			_, err := idempotency.DoExternal(ctx, g, key, fp, gives(new(int), "again", nil))
			require.ErrorIs(t, err, fault.IdempotencyAbandoned)
		}
		return "late", nil
	})
	require.ErrorIs(t, err, fault.IdempotencyAbandoned)
	require.Equal(t, map[string]float64{"idempotency.claim claimed": 1, "idempotency.claim abandoned": 2, "idempotency.abandoned": 1}, m.Sums())
}
