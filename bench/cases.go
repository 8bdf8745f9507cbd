package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// fixture is one database, reached by the kit and, over a pool of the same size, by bare pgx.
type fixture struct {
	db     *postgres.DB
	bare   *pgxpool.Pool
	runner *tx.Runner
	guard  *idempotency.Guard
}

const business = `insert into bench.item (name) values ($1)`

func newFixture(ctx context.Context, dsn string) (*fixture, error) {
	m, err := migrations.New(dsn, migrations.All(), nil)
	if err != nil {
		return nil, err
	}
	if _, err := m.Up(ctx); err != nil {
		return nil, err
	}
	f := &fixture{}
	if f.db, err = postgres.Open(ctx, postgres.Config{DSN: dsn}, nil); err != nil {
		return nil, err
	}
	bare, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	bare.MaxConns = f.db.Stat().MaxConns()
	if f.bare, err = pgxpool.NewWithConfig(ctx, bare); err != nil {
		return nil, err
	}
	for _, sql := range []string{
		`drop schema if exists bench cascade`, `create schema bench`,
		`create table bench.item (id bigint generated always as identity primary key, name text not null)`,
	} {
		if _, err := f.bare.Exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	if f.runner, err = tx.NewRunner(f.db, nil); err != nil {
		return nil, err
	}
	keys, err := idempotency.NewKeyring("bench", bytes.Repeat([]byte("k"), 32))
	if err != nil {
		return nil, err
	}
	f.guard, err = idempotency.New(pgidempotency.New(f.db), f.runner, keys, nil)
	return f, err
}

func (f *fixture) close(ctx context.Context) error {
	f.bare.Close()
	return f.db.Close(ctx)
}

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

func (f *fixture) comparisons() []comparison {
	const n, rounds = 300, 30
	return []comparison{
		{"SQLSTATE classification", "<= 150 ns, 0 allocations", side{"postgres.Classifier.Classify", classify}, side{}, 1_000_000, rounds},
		{"write transaction, one INSERT", "<= 1.05x", side{"tx.Runner.InWrite", f.inWrite}, side{"pgx.BeginFunc", f.beginFunc}, n, rounds},
		{"read-only transaction, one SELECT", "-", side{"tx.Runner.InReadOnly", f.inReadOnly}, side{"pgx.BeginTxFunc", f.beginReadOnly}, n, rounds},
		{"keyed operation, first time", "three statements more", side{"idempotency.Do", f.first}, side{"pgx.BeginFunc", f.beginFunc}, n, rounds},
		{"keyed operation, repeat", "one statement", side{"idempotency.Do", f.replay}, side{"select 1", f.readOne}, n, rounds},
	}
}
