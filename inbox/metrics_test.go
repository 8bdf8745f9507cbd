package inbox_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/inbox"
	"caskeleton.dev/internal/testkit/meter"
	"caskeleton.dev/tx"
)

func TestMetrics(t *testing.T) {
	m, s, runs := meter.New("outcome"), newStore(), 0
	in, _ := newInbox(t, s, &inbox.Options{MaxAttempts: 2, Meter: m})
	handle := func(id string, deliveries int, err error) {
		_, _ = in.Handle(t.Context(), inbox.Message{ID: id, Deliveries: deliveries}, handler(&runs, err))
	}
	_, err := in.Handle(t.Context(), inbox.Message{ID: "a", Deliveries: 1}, func(context.Context, *tx.Tx) error {
		handle("a", 1, nil) // busy
		return nil
	})
	require.NoError(t, err)
	handle("a", 2, nil)     // duplicate
	handle("a", 3, nil)     // beyond the limit, and done all the same
	handle("b", 1, errBoom) // failed
	handle("b", 2, errBoom) // parked
	handle("b", 2, nil)     // still parked
	handle("b", 3, nil)     // likewise
	handle("", 1, nil)      // failed
	require.Equal(t, map[string]float64{
		"inbox.handled handled": 1, "inbox.handled busy": 1, "inbox.handled duplicate": 2, "inbox.handled failed": 2, "inbox.handled parked": 3,
		"inbox.duplicate": 2, "inbox.recovery_required": 1,
	}, m.Sums())
}
