package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// Shipments implements app.Shipments.
type Shipments struct{}

// Insert stores the shipment.
func (Shipments) Insert(ctx context.Context, t *tx.Tx, s domain.Shipment) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, `insert into orders.shipment (order_id, id) values ($1::uuid, $2::uuid)`, s.OrderID, s.ID)
	return err
}

// FindByOrder returns the shipment of an order.
func (Shipments) FindByOrder(ctx context.Context, t *tx.Tx, orderID string) (domain.Shipment, error) {
	if !isID(orderID) {
		return domain.Shipment{}, fault.New(fault.NotFound, "shipments.FindByOrder", nil)
	}
	q, err := postgres.Querier(t)
	if err != nil {
		return domain.Shipment{}, err
	}
	var s domain.Shipment
	err = q.QueryRow(ctx, `select id::text, order_id::text, created_at from orders.shipment where order_id = $1::uuid`, orderID).
		Scan(&s.ID, &s.OrderID, &s.CreatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Shipment{}, fault.New(fault.NotFound, "shipments.FindByOrder", nil)
	}
	return s, err
}
