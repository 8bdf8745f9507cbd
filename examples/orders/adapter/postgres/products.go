package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/tx"
)

// Products implements app.Products.
type Products struct{}

// Prices reads the prices of skus.
func (Products) Prices(ctx context.Context, t *tx.Tx, skus []string) (map[string]int64, error) {
	q, err := postgres.Querier(t)
	if err != nil {
		return nil, err
	}
	rows, err := q.Query(ctx, `select sku, price_cents from orders.product where sku = any($1::text[])`, skus)
	if err != nil {
		return nil, err
	}
	prices := make(map[string]int64, len(skus))
	var sku string
	var cents int64
	_, err = pgx.ForEachRow(rows, []any{&sku, &cents}, func() error {
		prices[sku] = cents
		return nil
	})
	return prices, err
}
