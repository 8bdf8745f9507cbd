package app

import (
	"context"
	"time"

	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// expireBatch is how many orders expire in one transaction: it holds their rows, and is done anew where it fails.
const expireBatch = 100

// ExpireOrders ends orders that nobody shipped.
type ExpireOrders struct {
	Runner *tx.Runner
	Orders Orders
	Events Events
	After  time.Duration // since an order was placed, by the database's clock
}

// Do expires all orders that were not shipped in time, and records order.expired with each, in transactions of a hundred. What an error leaves, the
// next call finds.
func (u ExpireOrders) Do(ctx context.Context) error {
	for {
		n, err := tx.Value(ctx, u.Runner.InWrite, u.batch)
		if err != nil || n < expireBatch {
			return err
		}
	}
}

func (u ExpireOrders) batch(ctx context.Context, t *tx.Tx) (int, error) {
	stale, err := u.Orders.Stale(ctx, t, u.After, expireBatch)
	if err != nil {
		return 0, err
	}
	var events []outbox.Event
	for _, o := range stale {
		o, changed := o.Expire()
		if !changed {
			continue
		}
		if err := u.Orders.Update(ctx, t, o); err != nil {
			return 0, err
		}
		expired, err := o.Event(domain.OrderExpired)
		if err != nil {
			return 0, err
		}
		events = append(events, expired)
	}
	if len(events) == 0 {
		return len(stale), nil
	}
	return len(stale), u.Events.Append(ctx, t, events...)
}
