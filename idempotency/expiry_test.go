package idempotency_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/idempotency"
)

// Expiry is when an answer may be forgotten, not when it is wrong.
func TestAnAnswerIsGivenUntilItIsReaped(t *testing.T) {
	w, runs := newWhole(t, idempotency.Options{}), 0
	r, err := idempotency.NewReaper(w.Guard, nil)
	require.NoError(t, err)
	for _, want := range []idempotency.Outcome[string]{{Value: "first"}, {Value: "first", Replayed: true}} {
		out, err := idempotency.Do(t.Context(), w.Guard, key, fp, answer(&runs, "first"))
		require.NoError(t, err)
		require.Equal(t, want, out)
		w.ahead += 25 * time.Hour
	}
	_, err = r.Pass(t.Context())
	require.NoError(t, err)
	out, err := idempotency.Do(t.Context(), w.Guard, key, fp, answer(&runs, "second"))
	require.NoError(t, err)
	require.Equal(t, idempotency.Outcome[string]{Value: "second"}, out)
	require.Equal(t, 2, runs)
}
