package app

import (
	"context"

	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/tx"
)

// GetOrder reads orders.
type GetOrder struct {
	Runner *tx.Runner
	Orders Orders
}

// Do returns the order, or NOT_FOUND.
func (u GetOrder) Do(ctx context.Context, id string) (domain.Order, error) {
	return tx.Value(ctx, u.Runner.InReadOnly, func(ctx context.Context, t *tx.Tx) (domain.Order, error) {
		return u.Orders.Find(ctx, t, id)
	})
}
