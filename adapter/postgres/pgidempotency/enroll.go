package pgidempotency

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/idempotency"
)

// enrollSQL has no effect beside an enrolled key of any version: a unique index allows one row.
const enrollSQL = `insert into caskeleton.idempotency_key (version, check_value) values ($1, $2::bytea) on conflict do nothing`

const enrolledSQL = `select version, check_value from caskeleton.idempotency_key`

// Enroll implements idempotency.Driver. It reads in a second statement: the first one's snapshot may be older than the row it met.
func (r *Records) Enroll(ctx context.Context, version string, check []byte) error {
	if _, err := r.db.Exec(ctx, enrollSQL, version, check); err != nil {
		return err
	}
	var known string
	var value []byte
	err := r.db.QueryRow(ctx, enrolledSQL).Scan(&known, &value)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("pgidempotency: the key was deleted while it was enrolled: %w", err)
	case err != nil:
		return err
	case known != version:
		return fmt.Errorf("%w: that of version %s", idempotency.ErrOtherSecret, known)
	case !bytes.Equal(value, check):
		return fmt.Errorf("%w under this version", idempotency.ErrOtherSecret)
	}
	return nil
}
