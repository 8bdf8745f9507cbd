package postgres

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// joinedSQL is the handle of a [joined] transaction of database/sql.
type joinedSQL struct {
	c *joined
	h sqlHandle
}

var _ Batcher = joinedSQL{}

// Exec returns a tag that knows the number of rows and nothing else.
func (q joinedSQL) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	values, err := portable(args)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	result, err := q.h.ExecContext(ctx, sql, values...)
	if err != nil {
		return pgconn.CommandTag{}, q.c.translate(ctx, "postgres.Exec", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		n = 0 // the statement has none
	}
	return pgconn.NewCommandTag(fmt.Sprintf("EXEC %d", n)), nil
}

func (q joinedSQL) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	values, err := portable(args)
	if err != nil {
		return failedRows{err}, err
	}
	inner, err := q.h.QueryContext(ctx, sql, values...) //nolint:rowserrcheck // whoever reads the rows asks
	if err != nil {
		err = q.c.translate(ctx, "postgres.Query", err)
		return failedRows{err}, err
	}
	r := &rows{Rows: &sqlRows{Rows: inner}, fail: func(err error) error { return q.c.translate(ctx, "postgres.Query", err) }}
	return r, r.Err()
}

func (q joinedSQL) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	r, _ := q.Query(ctx, sql, args...)
	return row{r}
}

// SendBatch runs each statement when its result is asked for, or at the end.
func (q joinedSQL) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return &sqlBatch{ctx: ctx, q: q, queued: b.QueuedQueries}
}

// portable returns args as values that every driver of database/sql can send. Drivers disagree about all others, arrays first.
func portable(args []any) ([]any, error) {
	values := make([]any, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return nil, fmt.Errorf("postgres: argument $%d is a %T, which the drivers of database/sql do not agree on; pass text, bytea, int8, bool or timestamptz, and a list as one jsonb", i+1, a)
		}
		values[i] = v
	}
	return values, nil
}
