package pgaudit

import (
	"context"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/reqctx"
	"caskeleton.dev/tx"
)

// setting is where the trigger reads who acts. It ends with the transaction.
const setting = "caskeleton.actor"

// Act tells the trigger that the actor of ctx acts for the rest of t, so that statements need not name the audit columns. It costs one
// round trip, however many rows follow. A later Act, [Values] or [Set] in t replaces the actor; a rollback to a savepoint restores the one
// before.
func Act(ctx context.Context, t *tx.Tx) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, `select set_config('`+setting+`', $1::text, true)`, reqctx.Actor(ctx))
	return err
}
