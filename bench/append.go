package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

var payload = bytes.Repeat([]byte("x"), 200)

// placed is an event of the ith of 1,000 aggregates.
func placed(i int) outbox.Event {
	return outbox.Event{Type: "order.placed", AggregateType: "order", AggregateID: fmt.Sprintf("a%d", i%1000), Payload: payload}
}

// append records an event with the business row.
func (f *fixture) append(ctx context.Context, n int) error {
	return times(n, func(i int) error {
		return f.runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
			q, err := postgres.Querier(t)
			if err != nil {
				return err
			}
			if _, err := q.Exec(ctx, business, "kit"); err != nil {
				return err
			}
			return f.outbox.Append(ctx, t, placed(i))
		})
	})
}

// insert writes the same to a table that nothing reads in order: no sequence, no lane.
func (f *fixture) insert(ctx context.Context, n int) error {
	return times(n, func(i int) error {
		e := placed(i)
		return pgx.BeginFunc(ctx, f.bare, func(t pgx.Tx) error {
			if _, err := t.Exec(ctx, business, "bare"); err != nil {
				return err
			}
			_, err := t.Exec(ctx, `insert into bench.event (aggregatetype, aggregateid, type, payload) values ($1, $2, $3, $4)`,
				e.AggregateType, e.AggregateID, e.Type, e.Payload)
			return err
		})
	})
}
