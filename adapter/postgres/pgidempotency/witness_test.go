package pgidempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// The cuts of adapter/postgres ask about transactions that were lost; this is what else may have become of the record.
func TestARecordTellsOfItsTransactionAlone(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t, mode)
			claim := f.claim(t, request("a"))
			tells := func(want tx.Outcome, what string) {
				got, err := pgidempotency.Completed(claim)(t.Context(), f.db)
				require.NoError(t, err, what)
				require.Equal(t, want, got, what)
			}
			tells(tx.NotCommitted, "it is claimed")
			require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) error {
				return errors.Join(f.records.Start(ctx, w, claim, nil), f.records.Complete(ctx, w, claim, idempotency.Answer{Payload: []byte("done")}))
			}))
			tells(tx.Committed, "it was completed")

			mine := claim
			claim.Operation = "another"
			tells(tx.Unknown, "another operation has it: ours may have completed it, and it expired and was claimed anew")
			claim = mine
			claim.Revision++
			tells(tx.NotCommitted, "a later claim of the same operation has")
			claim = mine
			_, err := f.db.Exec(t.Context(), `update caskeleton.idempotency_record set state = 'FAILED'`)
			require.NoError(t, err)
			tells(tx.NotCommitted, "it was refused")
			_, err = f.db.Exec(t.Context(), `delete from caskeleton.idempotency_record`)
			require.NoError(t, err)
			tells(tx.Unknown, "it is gone")
		})
	}
}

// What the witness says while the transaction is open would not be final: it waits.
func TestARecordTellsNothingOfAnOpenTransaction(t *testing.T) {
	f := newFixture(t, "")
	claim := f.claim(t, request("a"))
	require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) error {
		require.NoError(t, f.records.Start(ctx, w, claim, nil))
		require.NoError(t, f.records.Complete(ctx, w, claim, idempotency.Answer{Payload: []byte("done")}))
		err := f.runner.With(tx.Options{LockTimeout: 20 * time.Millisecond}).InNew(ctx, func(ctx context.Context, other *tx.Tx) error {
			q, err := postgres.Querier(other)
			require.NoError(t, err)
			_, err = pgidempotency.Completed(claim)(ctx, q)
			return err
		})
		require.ErrorIs(t, err, fault.DBLockTimeout)
		return nil
	}))
}
