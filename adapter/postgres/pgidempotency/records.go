package pgidempotency

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/idempotency"
)

// Records implements [idempotency.Driver]. Safe for concurrent use.
type Records struct{ db *postgres.DB }

// New returns the records kept in db.
func New(db *postgres.DB) *Records { return &Records{db} }

// owned is the predicate that names all of a claim but its state. All its types are those that every driver of a joined transaction can send.
const owned = `scope = $1 and owner = $2 and attempt = $3::bigint and operation = $4 and revision = $5`

// holder is that of a claim that has not begun to execute.
const holder = owned + ` and state = 'CLAIMED'`

func holderArgs(c idempotency.Claim, more ...any) []any {
	return append([]any{c.Scope[:], c.Owner, c.Attempt, c.Operation, c.Revision}, more...)
}

// list makes of scopes a bytea[].
func list(scopes ...idempotency.Scope) [][]byte {
	array := make([][]byte, 0, len(scopes))
	for _, s := range scopes {
		array = append(array, s[:])
	}
	return array
}

// changed runs a statement on the one row of a claim.
func changed(ctx context.Context, q postgres.DBTX, sql string, args ...any) error {
	tag, err := q.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() != 1 {
		return idempotency.ErrStale
	}
	return err
}

// one tells whether a query found its row.
func one(row pgx.Row, into ...any) (bool, error) {
	err := row.Scan(into...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
