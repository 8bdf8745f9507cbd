package postgres_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	kit "caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgaudit"
	"caskeleton.dev/audit"
	"caskeleton.dev/examples/orders/adapter/postgres"
	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/reqctx"
	"caskeleton.dev/tx"
)

func TestAnOrderSaysWhoPlacedAndWhoCancelledIt(t *testing.T) {
	dsn := migrationstest.DSN(t, migrations.Stream{Name: "orders", Schema: "orders", FS: postgres.Migrations()})
	db, err := kit.Open(t.Context(), kit.Config{DSN: dsn}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) })
	runner, err := tx.NewRunner(db, nil)
	require.NoError(t, err)

	order := domain.Order{ID: "0197c2a5-7d5e-7000-8000-000000000001", Status: "placed", CustomerID: "ada", TotalCents: 450, Version: 1, Items: []domain.Item{{SKU: "tea", Quantity: 1}}}
	require.NoError(t, runner.InWrite(reqctx.WithActor(t.Context(), "ann"), func(ctx context.Context, tr *tx.Tx) (err error) {
		order, err = postgres.Orders{}.Insert(ctx, tr, order)
		return err
	}))
	require.NoError(t, runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		order.Status, order.Version = "cancelled", 2
		return postgres.Orders{}.Update(ctx, tr, order)
	}))
	var s audit.Stamp
	require.NoError(t, db.QueryRow(t.Context(), `select `+pgaudit.Columns+` from orders."order"`).Scan(pgaudit.Fields(&s)...))
	require.Equal(t, "ann", s.CreatedBy)
	require.Equal(t, order.CreatedAt, s.CreatedAt)
	require.Equal(t, "system", s.UpdatedBy)
	require.True(t, s.UpdatedAt.After(s.CreatedAt))
}
