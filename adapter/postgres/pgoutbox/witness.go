package pgoutbox

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/tx"
)

// identitySQL waits for an open transaction that has recorded the event.
const identitySQL = `insert into caskeleton.outbox_identity (id, recorded_at) values ($1, $2) on conflict (id) do nothing`

const recordedAtSQL = `select recorded_at from caskeleton.outbox_identity where id = $1`

// identity is the witness of the transaction that recorded the event at that time. An id alone would not do: where its program makes the
// ids, another attempt may have recorded the event meanwhile.
func identity(id string, at time.Time) postgres.Witness {
	return func(ctx context.Context, q postgres.DBTX) (tx.Outcome, error) {
		tag, err := q.Exec(ctx, identitySQL, id, at)
		if err != nil {
			return tx.Unknown, err
		}
		if tag.RowsAffected() == 1 {
			return tx.NotCommitted, nil
		}
		var there time.Time
		err = q.QueryRow(ctx, recordedAtSQL, id).Scan(&there) // in a second statement, whose snapshot has the row
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return tx.Unknown, nil
		case err != nil:
			return tx.Unknown, err
		case there.Equal(at):
			return tx.Committed, nil
		}
		return tx.NotCommitted, nil
	}
}
