package jointest

import (
	"context"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/outbox"
)

// bunOrder is the table as bun sees it.
type bunOrder struct {
	bun.BaseModel `bun:"table:public.orders"`

	ID string `bun:"id,pk"`
}

func placeWithBun(db *bun.DB) place {
	return func(ctx context.Context, ob *outbox.Outbox, id string, result error) error {
		dbtx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = dbtx.Rollback() }()
		if _, err := dbtx.NewInsert().Model(&bunOrder{ID: id}).Exec(ctx); err != nil {
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

func TestBun(t *testing.T) {
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			s := open(t)
			s.prove(t, placeWithBun(bun.NewDB(s.pool(t, driver), pgdialect.New())))
		})
	}
}
