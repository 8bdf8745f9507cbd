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

// What took long to find out is kept for as long as what was known at once: a client that has been told to come back does so.
func TestAnAnswerThatWasFoundOutLateIsKept(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	r, err := idempotency.NewReaper(w.Guard, nil)
	require.NoError(t, err)
	e := w.interrupted(t, "abc")
	w.ahead += 72 * time.Hour // a weekend
	require.NoError(t, w.Reconcile(t.Context(), e.Claim, idempotency.CompletedWith("paid")))
	for range 2 {
		done, err := r.Pass(t.Context())
		require.NoError(t, err)
		require.Zero(t, done.Deleted)
		out, err := idempotency.DoExternal(t.Context(), w.Guard, key, fp, gives(new(int), "paid twice", nil))
		require.NoError(t, err)
		require.Equal(t, idempotency.Outcome[string]{Value: "paid", Replayed: true}, out)
		w.ahead += 23 * time.Hour
	}
	w.ahead += time.Hour
	done, err := r.Pass(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, done.Deleted)
}
