package jointest

import (
	"context"
	"database/sql"
	"testing"

	_ "github.com/lib/pq"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/outbox"
)

func placeWithSQL(db *sql.DB) place {
	return func(ctx context.Context, ob *outbox.Outbox, id string, result error) error {
		dbtx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = dbtx.Rollback() }()
		if _, err := dbtx.ExecContext(ctx, `insert into public.orders (id) values ($1)`, id); err != nil {
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

func TestDatabaseSQL(t *testing.T) {
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			s := open(t)
			s.prove(t, placeWithSQL(s.pool(t, driver)))
		})
	}
}
