package outboxtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/outbox"
	"caskeleton.dev/outbox/outboxtest"
	"caskeleton.dev/tx"
)

func TestARecorderKeepsWhatWasCommitted(t *testing.T) {
	var rec outboxtest.Recorder
	runner, err := tx.NewRunner(&rec, nil)
	require.NoError(t, err)
	ob, err := outbox.New(&rec, nil)
	require.NoError(t, err)
	errBoom := errors.New("boom")
	record := func(id string, result error) error {
		return runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			require.NoError(t, ob.Append(ctx, tr, outbox.Event{Type: "order.placed", AggregateType: "order", AggregateID: id}))
			return result
		})
	}
	require.NoError(t, record("1", nil))
	require.ErrorIs(t, record("2", errBoom), errBoom)
	require.NoError(t, record("3", nil))
	require.NoError(t, runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		require.ErrorIs(t, tr.Savepoint(ctx, func(ctx context.Context) error {
			require.NoError(t, ob.Append(ctx, tr, outbox.Event{Type: "order.placed", AggregateType: "order", AggregateID: "4"}))
			return errBoom
		}), errBoom)
		return nil
	}))
	var got []string
	for _, e := range rec.Events() {
		got = append(got, e.AggregateID)
		require.NotEmpty(t, e.ID)
	}
	require.Equal(t, []string{"1", "3"}, got)
	rec.Reset()
	require.Empty(t, rec.Events())
}

func TestARecorderInFrontOfADriver(t *testing.T) {
	s := newStore(t, "")
	rec := &outboxtest.Recorder{Driver: s.Driver}
	e := outbox.Event{ID: "0198c0de-0000-7000-8000-000000000001", AggregateType: "order", AggregateID: "1"}
	record := func() error {
		return s.Runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error { return rec.Append(ctx, tr, []outbox.Event{e}) })
	}
	require.NoError(t, record())
	require.Error(t, record(), "the driver refuses the duplicate")
	require.Len(t, rec.Events(), 1)
	claims, err := s.Driver.Claim(t.Context(), outbox.ClaimRequest{Owner: "r", Limit: 1, RunSize: 1, Lease: time.Hour})
	require.NoError(t, err)
	require.Len(t, claims, 1)
}

func TestARecorderDeliversNothing(t *testing.T) {
	var rec outboxtest.Recorder
	claims, err := rec.Claim(t.Context(), outbox.ClaimRequest{})
	require.NoError(t, err)
	require.Empty(t, claims)
	_, _, ok, err := rec.NextDue(t.Context())
	require.NoError(t, err)
	require.False(t, ok)
	c := outbox.Claim{Lane: outbox.Lane{AggregateType: "order", AggregateID: "1"}}
	lost, err := rec.Settle(t.Context(), []outbox.Settlement{{Claim: c}})
	require.NoError(t, err)
	require.Equal(t, []outbox.Lane{c.Lane}, lost)
	lost, err = rec.Renew(t.Context(), []outbox.Claim{c}, 0)
	require.NoError(t, err)
	require.Equal(t, []outbox.Lane{c.Lane}, lost)
}
