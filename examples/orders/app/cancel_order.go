package app

import (
	"context"

	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/tx"
)

// CancelOrder cancels orders.
type CancelOrder struct {
	Runner *tx.Runner
	Orders Orders
	Events Events
}

// Do cancels the order, if check accepts the version that it is at, and records order.cancelled with it. A cancelled order stays as it is.
func (u CancelOrder) Do(ctx context.Context, id string, check func(version int64) error) (domain.Order, error) {
	return tx.Value(ctx, u.Runner.InWrite, func(ctx context.Context, t *tx.Tx) (domain.Order, error) {
		o, err := u.Orders.FindForUpdate(ctx, t, id)
		if err != nil {
			return domain.Order{}, err
		}
		if err := check(o.Version); err != nil {
			return domain.Order{}, err
		}
		o, changed := o.Cancel()
		if !changed {
			return o, nil
		}
		if err := u.Orders.Update(ctx, t, o); err != nil {
			return domain.Order{}, err
		}
		cancelled, err := o.Event(domain.OrderCancelled)
		if err != nil {
			return domain.Order{}, err
		}
		return o, u.Events.Append(ctx, t, cancelled)
	})
}
