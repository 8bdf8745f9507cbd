package jointest

import (
	"context"
	"testing"

	"github.com/jmoiron/sqlx"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/outbox"
)

func placeWithSqlx(db *sqlx.DB) place {
	return func(ctx context.Context, ob *outbox.Outbox, id string, result error) error {
		dbtx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = dbtx.Rollback() }()
		if _, err := dbtx.NamedExecContext(ctx, `insert into public.orders (id) values (:id)`, map[string]any{"id": id}); err != nil {
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

func TestSqlx(t *testing.T) {
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			s := open(t)
			s.prove(t, placeWithSqlx(sqlx.NewDb(s.pool(t, driver), driver)))
		})
	}
}
