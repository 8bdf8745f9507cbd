package pgidempotency_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// A transaction that is run again, at any isolation, locks its record again and stores one answer: that of the run that committed.
func TestATransactionThatIsRunAgainAnswersOnce(t *testing.T) {
	for _, isolation := range []tx.Isolation{tx.ReadCommitted, tx.RepeatableRead, tx.Serializable} {
		f := newFixture(t, "")
		_, err := f.db.Exec(t.Context(), `create table public.effect (run int); grant insert on public.effect to public`)
		require.NoError(t, err)
		f.runner = f.runner.With(tx.Options{Isolation: isolation, Retry: tx.Retry{Attempts: 3, MaxWait: time.Millisecond}})
		g := f.newGuard(t, &idempotency.Options{Owner: "again"})
		runs := 0
		do := func() (idempotency.Outcome[int], error) {
			return idempotency.Do(t.Context(), g, key("k"), idempotency.Fingerprint{}, func(ctx context.Context, tr *tx.Tx) (int, error) {
				runs++
				q, err := postgres.Querier(tr)
				require.NoError(t, err)
				if _, err := q.Exec(ctx, `insert into public.effect values ($1)`, runs); err != nil {
					return 0, err
				}
				_, err = idempotency.Do(t.Context(), g, key("k"), idempotency.Fingerprint{}, func(context.Context, *tx.Tx) (int, error) { return 0, nil })
				require.ErrorIs(t, err, fault.IdempotencyInProgress)
				if runs < 3 {
					return 0, fault.New(fault.DBSerializationFailure, "test", nil)
				}
				return runs, nil
			})
		}
		for _, replayed := range []bool{false, true} {
			out, err := do()
			require.NoError(t, err)
			require.Equal(t, idempotency.Outcome[int]{Value: 3, Replayed: replayed}, out)
		}
		require.Equal(t, 3, runs)
		var effects, run int
		require.NoError(t, f.db.QueryRow(t.Context(), `select count(*), max(run) from public.effect`).Scan(&effects, &run))
		require.Equal(t, []int{1, 3}, []int{effects, run})
	}
}
