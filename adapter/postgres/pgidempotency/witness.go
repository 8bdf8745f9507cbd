package pgidempotency

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// endSQL waits for the transaction that holds the row since Start, and then sees what it left.
const endSQL = `select state, operation, revision from caskeleton.idempotency_record where scope = $1 for update`

// completed is the witness of the transaction that completed c. An operation is one call's own: nobody else can have completed it.
func completed(c idempotency.Claim) postgres.Witness {
	return func(ctx context.Context, q postgres.DBTX) (tx.Outcome, error) {
		var state idempotency.State
		var operation string
		var revision int64
		err := q.QueryRow(ctx, endSQL, c.Scope[:]).Scan(&state, &operation, &revision)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return tx.Unknown, nil
		case err != nil:
			return tx.Unknown, err
		case operation != c.Operation: // taken over from us, or completed by us, reaped and claimed anew: the row does not say which
			return tx.Unknown, nil
		case state == idempotency.Completed && revision == c.Revision+1:
			return tx.Committed, nil
		}
		return tx.NotCommitted, nil
	}
}
