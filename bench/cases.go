package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

const business = `insert into bench.item (name) values ($1)`

func times(n int, op func(i int) error) error {
	for i := range n {
		if err := op(i); err != nil {
			return err
		}
	}
	return nil
}

func (f *fixture) inWrite(ctx context.Context, n int) error {
	return times(n, func(int) error {
		return f.runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
			q, err := postgres.Querier(t)
			if err != nil {
				return err
			}
			_, err = q.Exec(ctx, business, "kit")
			return err
		})
	})
}

func (f *fixture) beginFunc(ctx context.Context, n int) error {
	return times(n, func(int) error {
		return pgx.BeginFunc(ctx, f.bare, func(t pgx.Tx) error {
			_, err := t.Exec(ctx, business, "bare")
			return err
		})
	})
}

func (f *fixture) inReadOnly(ctx context.Context, n int) error {
	return times(n, func(int) error {
		return f.runner.InReadOnly(ctx, func(ctx context.Context, t *tx.Tx) error {
			q, err := postgres.Querier(t)
			if err != nil {
				return err
			}
			var one int
			return q.QueryRow(ctx, `select 1`).Scan(&one)
		})
	})
}

func (f *fixture) beginReadOnly(ctx context.Context, n int) error {
	return times(n, func(int) error {
		return pgx.BeginTxFunc(ctx, f.bare, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(t pgx.Tx) error {
			var one int
			return t.QueryRow(ctx, `select 1`).Scan(&one)
		})
	})
}

// first runs operations under keys that were never used; replay repeats one.
func (f *fixture) first(ctx context.Context, n int) error {
	run := strconv.FormatInt(time.Now().UnixNano(), 36)
	return times(n, func(i int) error { return f.keyed(ctx, fmt.Sprintf("%s-%d", run, i)) })
}

func (f *fixture) replay(ctx context.Context, n int) error {
	return times(n, func(int) error { return f.keyed(ctx, "replayed") })
}

func (f *fixture) keyed(ctx context.Context, client string) error {
	key := idempotency.Key{Method: "POST", Route: "/items", Client: client}
	_, err := idempotency.Do(ctx, f.guard, key, idempotency.Fingerprint{}, func(ctx context.Context, t *tx.Tx) (string, error) {
		q, err := postgres.Querier(t)
		if err != nil {
			return "", err
		}
		_, err = q.Exec(ctx, business, "keyed")
		return "done", err
	})
	return err
}

// readOne is the one statement that a replay cannot do without.
func (f *fixture) readOne(ctx context.Context, n int) error {
	return times(n, func(int) error {
		var one int
		return f.bare.QueryRow(ctx, `select 1`).Scan(&one)
	})
}

func classify(_ context.Context, n int) error {
	c, err := postgres.NewClassifier()
	if err != nil {
		return err
	}
	err = &pgconn.PgError{Code: pgerrcode.DeadlockDetected, Severity: "ERROR", SeverityUnlocalized: "ERROR"}
	return times(n, func(int) error {
		if code, ok := c.Classify(err); !ok || code != fault.DBDeadlock {
			return errors.New("misclassified")
		}
		return nil
	})
}

// pairs are the costs of the kit's operations.
func (f *fixture) pairs(rounds int) []comparison {
	const n = 300
	begin := side{"pgx.BeginFunc", f.beginFunc}
	return []comparison{
		{name: "SQLSTATE classification", target: "<= 150 ns, 0 allocations", kit: side{"postgres.Classifier.Classify", classify}, n: 1_000_000, rounds: rounds},
		{name: "write transaction, one INSERT", target: "<= 1.05x", kit: side{"tx.Runner.InWrite", f.inWrite}, other: begin, n: n, rounds: rounds},
		{name: "read-only transaction, one SELECT", target: "-", kit: side{"tx.Runner.InReadOnly", f.inReadOnly}, other: side{"pgx.BeginTxFunc", f.beginReadOnly}, n: n, rounds: rounds},
		{name: "keyed operation, first time", target: "three statements more", kit: side{"idempotency.Do", f.first}, other: begin, n: n, rounds: rounds},
		{name: "keyed operation, repeat", target: "one statement", kit: side{"idempotency.Do", f.replay}, other: side{"select 1", f.readOne}, n: n, rounds: rounds},
		{
			name: "write transaction, one INSERT and one event, in one round trip more", target: "-",
			kit: side{"outbox.Append", f.append}, other: side{"INSERT into a plain table", f.insert}, n: n, rounds: rounds,
		},
	}
}
