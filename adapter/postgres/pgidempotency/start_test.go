package pgidempotency_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// Start has the row for its transaction alone, and writes nothing: a version of it that nobody has committed would be in the way of all.
func TestStartLocksAndWritesNothing(t *testing.T) {
	for name, others := range map[string][]idempotency.Scope{"one version": nil, "several versions": {{7}, {8}}} {
		for _, mode := range execModes {
			t.Run(name+" "+mode, func(t *testing.T) {
				f := newFixture(t, mode)
				c := f.claim(t, request("a"))
				f.expire(t)
				const place = `select ctid::text from caskeleton.idempotency_record`
				var before, after string
				require.NoError(t, f.db.QueryRow(t.Context(), place).Scan(&before))
				require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
					require.NoError(t, f.records.Start(ctx, tr, c, others))
					q, err := postgres.Querier(tr)
					require.NoError(t, err)
					require.NoError(t, q.QueryRow(ctx, place).Scan(&after))
					require.Equal(t, before, after, "it was updated")
					_, taken, err := f.records.TakeOver(t.Context(), c, request("b"))
					require.NoError(t, err)
					require.False(t, taken, "it is not locked")
					return nil
				}))
			})
		}
	}
}
