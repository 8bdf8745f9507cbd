package idempotency_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// unstartable is a store whose records cannot be locked.
type unstartable struct{ *store }

func (unstartable) Start(context.Context, *tx.Tx, idempotency.Claim, []idempotency.Scope) error {
	return fault.New(fault.DBLockTimeout, "store.Start", nil)
}

func TestWhatCannotStartDoesNotRun(t *testing.T) {
	s, runs := newStore(), 0
	runner, err := tx.NewRunner(s, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("1", secret)
	require.NoError(t, err)
	g, err := idempotency.New(unstartable{s}, runner, keys, nil)
	require.NoError(t, err)
	_, err = idempotency.Do(t.Context(), g, key, fp, answer(&runs, "x"))
	require.ErrorIs(t, err, fault.DBLockTimeout)
	require.Zero(t, runs)
	require.Equal(t, []string{"claim", "begin", "rollback", "release"}, s.calls)
}

// silent is an answer that is stored as no bytes.
type silent struct{}

func (*silent) MarshalBinary() ([]byte, error) { return nil, nil }
func (*silent) UnmarshalBinary([]byte) error   { return nil }

func TestAnAnswerOfNoBytesIsNotNull(t *testing.T) {
	s := newStore()
	g, _ := newGuard(t, s, nil)
	_, err := idempotency.Do(t.Context(), g, key, fp, func(context.Context, *tx.Tx) (silent, error) { return silent{}, nil })
	require.NoError(t, err)
	require.Len(t, s.rows, 1)
	for _, rec := range s.rows {
		require.Equal(t, []byte{}, rec.Payload)
	}
}

// What an operation says of the claims of others is no word about its own.
func TestAnErrorOfTheOperationsOwnIsNotALostClaim(t *testing.T) {
	for _, own := range []error{idempotency.ErrStale, idempotency.ErrRival} {
		s, runs := newStore(), 0
		g, _ := newGuard(t, s, nil)
		_, err := idempotency.Do(t.Context(), g, key, fp, func(context.Context, *tx.Tx) (string, error) { return "", own })
		require.ErrorIs(t, err, own)
		require.NotErrorIs(t, err, fault.IdempotencyInProgress)
		_, err = idempotency.Do(t.Context(), g, key, fp, answer(&runs, "x"))
		require.NoError(t, err, "the key was given back")
	}
}
