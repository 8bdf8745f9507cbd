package app

import (
	"context"

	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/tx"
)

// PlaceOrder places orders.
type PlaceOrder struct {
	Orders   Orders
	Products Products
	Events   Events
	NewID    func() string
}

// Do places one order in t, and records order.placed with it. A draft that breaks a rule is REQUEST_INVALID, with every field at fault.
func (u PlaceOrder) Do(ctx context.Context, t *tx.Tx, d domain.Draft) (domain.Order, error) {
	skus := make([]string, len(d.Items))
	for i, it := range d.Items {
		skus[i] = it.SKU
	}
	prices, err := u.Products.Prices(ctx, t, skus)
	if err != nil {
		return domain.Order{}, err
	}
	o, err := domain.Place(u.NewID(), d, prices)
	if err != nil {
		return domain.Order{}, err
	}
	if o, err = u.Orders.Insert(ctx, t, o); err != nil {
		return domain.Order{}, err
	}
	placed, err := o.Event(domain.OrderPlaced)
	if err != nil {
		return domain.Order{}, err
	}
	return o, u.Events.Append(ctx, t, placed)
}
