package app

import (
	"context"

	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/tx"
)

// GetShipment reads shipments.
type GetShipment struct {
	Runner    *tx.Runner
	Shipments Shipments
}

// Do returns the shipment of an order, or NOT_FOUND.
func (u GetShipment) Do(ctx context.Context, orderID string) (domain.Shipment, error) {
	return tx.Value(ctx, u.Runner.InReadOnly, func(ctx context.Context, t *tx.Tx) (domain.Shipment, error) {
		return u.Shipments.FindByOrder(ctx, t, orderID)
	})
}
