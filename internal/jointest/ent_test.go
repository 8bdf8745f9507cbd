package jointest

import (
	"context"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/outbox"
)

// The transaction is that of ent's driver, which generated code runs on.
func placeWithEnt(driver *entsql.Driver) place {
	return func(ctx context.Context, ob *outbox.Outbox, id string, result error) error {
		dbtx, err := driver.Tx(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = dbtx.Rollback() }()
		query, args := entsql.Dialect(dialect.Postgres).Insert("orders").Schema("public").Columns("id").Values(id).Query()
		if err := dbtx.Exec(ctx, query, args, nil); err != nil {
			return err
		}

		t, joined, err := postgres.Wrap(ctx, dbtx)
		if err != nil {
			return err
		}
		defer joined.RolledBack()
		if err := ob.Append(ctx, t, placed(id)); err != nil {
			return err
		}

		if result != nil {
			return result
		}
		if err := dbtx.Commit(); err != nil {
			return err
		}
		return joined.Committed(ctx)
	}
}

func TestEnt(t *testing.T) {
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			s := open(t)
			s.prove(t, placeWithEnt(entsql.OpenDB(dialect.Postgres, s.pool(t, driver))))
		})
	}
}
