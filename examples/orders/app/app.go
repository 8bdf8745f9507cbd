// Package app holds the use cases of the order service: what happens, in which transaction, in which order.
package app

import (
	"context"

	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/tx"
)

// Orders stores orders, in the transaction it is given.
type Orders interface {
	// Insert stores a new order and returns it as stored, with the time that the database gave it.
	Insert(ctx context.Context, t *tx.Tx, o domain.Order) (domain.Order, error)
	// Find returns an order, or NOT_FOUND.
	Find(ctx context.Context, t *tx.Tx, id string) (domain.Order, error)
}

// Products knows what is on sale.
type Products interface {
	// Prices returns the price in cents of each SKU that is on sale; others are left out.
	Prices(ctx context.Context, t *tx.Tx, skus []string) (map[string]int64, error)
}
