package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// joinedPgx is the handle of a [joined] transaction of pgx.
type joinedPgx struct {
	c *joined
	t pgx.Tx
}

var _ Batcher = joinedPgx{}

func (q joinedPgx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tag, err := q.t.Exec(ctx, sql, args...)
	return tag, q.c.translate(ctx, "postgres.Exec", err)
}

func (q joinedPgx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	inner, err := q.t.Query(ctx, sql, args...)
	fail := func(err error) error { return q.c.translate(ctx, "postgres.Query", err) }
	if inner == nil {
		err = fail(err)
		return failedRows{err}, err
	}
	r := &rows{Rows: inner, fail: fail}
	return r, r.Err()
}

func (q joinedPgx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	r, _ := q.Query(ctx, sql, args...)
	return row{r}
}

func (q joinedPgx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return &batch{
		BatchResults: q.t.SendBatch(ctx, b),
		fail:         func(err error) error { return q.c.translate(ctx, "postgres.SendBatch", err) },
	}
}
