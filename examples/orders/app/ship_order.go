package app

import (
	"context"

	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/tx"
)

// ShipOrder ships orders that were placed.
type ShipOrder struct {
	Orders    Orders
	Shipments Shipments
	Events    Events
	NewID     func() string
}

// Do makes the shipment of an order in t, and records shipment.created with it. An order that has expired meanwhile is left alone.
func (u ShipOrder) Do(ctx context.Context, t *tx.Tx, placed domain.OrderEvent) error {
	o, err := u.Orders.FindForUpdate(ctx, t, placed.OrderID)
	if err != nil || !o.Shippable() {
		return err
	}
	if err := u.Orders.Shipped(ctx, t, o.ID); err != nil {
		return err
	}
	s := domain.Shipment{ID: u.NewID(), OrderID: placed.OrderID}
	if err := u.Shipments.Insert(ctx, t, s); err != nil {
		return err
	}
	created, err := s.Event()
	if err != nil {
		return err
	}
	return u.Events.Append(ctx, t, created)
}
