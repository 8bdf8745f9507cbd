// Package app holds the use cases of the order service: what happens, in which transaction, in which order.
package app

import (
	"context"
	"time"

	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// Orders stores orders, in the transaction it is given.
type Orders interface {
	// Insert stores a new order and returns it as stored, with the time that the database gave it.
	Insert(ctx context.Context, t *tx.Tx, o domain.Order) (domain.Order, error)
	// Find returns an order, or NOT_FOUND.
	Find(ctx context.Context, t *tx.Tx, id string) (domain.Order, error)
	// FindForUpdate is Find, and keeps others from changing the order until t ends.
	FindForUpdate(ctx context.Context, t *tx.Tx, id string) (domain.Order, error)
	// Update stores status and version of an order that FindForUpdate or Stale returned.
	Update(ctx context.Context, t *tx.Tx, o domain.Order) error
	// Stale returns placed orders that were not shipped for longer than age, the oldest first, limit at most, and keeps others from changing or
	// shipping them until t ends. It leaves out what others are at.
	Stale(ctx context.Context, t *tx.Tx, age time.Duration, limit int) ([]domain.Order, error)
	// Shipped notes that an order that FindForUpdate returned was shipped.
	Shipped(ctx context.Context, t *tx.Tx, id string) error
}

// Shipments stores shipments, in the transaction it is given.
type Shipments interface {
	// Insert stores a new shipment; a second one of an order is DB_UNIQUE_VIOLATION.
	Insert(ctx context.Context, t *tx.Tx, s domain.Shipment) error
	// FindByOrder returns the shipment of an order, or NOT_FOUND.
	FindByOrder(ctx context.Context, t *tx.Tx, orderID string) (domain.Shipment, error)
}

// Events records what happened, in the transaction it happened in.
type Events interface {
	Append(ctx context.Context, t *tx.Tx, events ...outbox.Event) error
}

// Products knows what is on sale.
type Products interface {
	// Prices returns the price in cents of each SKU that is on sale; others are left out.
	Prices(ctx context.Context, t *tx.Tx, skus []string) (map[string]int64, error)
}
