package app

import (
	"context"

	"caskeleton.dev/outbox"
)

// maxEvents is how many events of one order are listed.
const maxEvents = 1000

// Published knows what was delivered.
type Published interface {
	// Published returns the first events of an aggregate that were delivered, in order.
	Published(ctx context.Context, l outbox.Lane, limit int) ([]outbox.Event, error)
}

// ListEvents lists what was published about an order.
type ListEvents struct {
	Orders GetOrder
	Events Published
}

// Do returns the order's published events, or NOT_FOUND where there is no such order.
func (u ListEvents) Do(ctx context.Context, orderID string) ([]outbox.Event, error) {
	o, err := u.Orders.Do(ctx, orderID)
	if err != nil {
		return nil, err
	}
	return u.Events.Published(ctx, outbox.Lane{AggregateType: "order", AggregateID: o.ID}, maxEvents)
}
