package jointest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/outbox"
)

// gormOrder is the table as gorm sees it.
type gormOrder struct {
	ID string `gorm:"primaryKey"`
}

func (gormOrder) TableName() string { return "public.orders" }

// gorm commits when the function returns, so the end is told after that.
func placeWithGorm(db *gorm.DB) place {
	return func(ctx context.Context, ob *outbox.Outbox, id string, result error) error {
		var joined *postgres.Joined
		err := db.WithContext(ctx).Transaction(func(dbtx *gorm.DB) error {
			if err := dbtx.Create(&gormOrder{ID: id}).Error; err != nil {
				return err
			}

			t, j, err := postgres.Wrap(ctx, dbtx.Statement.ConnPool)
			if err != nil {
				return err
			}
			joined = j
			if err := ob.Append(ctx, t, placed(id)); err != nil {
				return err
			}
			return result
		})
		if err != nil {
			return err // nothing was committed, and hooks that never run need no farewell
		}
		return joined.Committed(ctx)
	}
}

func TestGorm(t *testing.T) {
	for _, driver := range drivers {
		for _, prepared := range []bool{false, true} {
			t.Run(driver, func(t *testing.T) {
				s := open(t)
				db, err := gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: s.pool(t, driver)}), &gorm.Config{PrepareStmt: prepared, Logger: logger.Discard})
				require.NoError(t, err)
				s.prove(t, placeWithGorm(db))
			})
		}
	}
}
