// Package postgres stores the order service's data. Each method works in the transaction it is given.
package postgres

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgaudit"
	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/fault"
	"caskeleton.dev/reqctx"
	"caskeleton.dev/tx"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations returns the files of the stream "orders".
func Migrations() fs.FS {
	sub, err := fs.Sub(files, "migrations")
	if err != nil {
		panic(err) // the path is a constant
	}
	return sub
}

// Orders implements app.Orders.
type Orders struct{}

type item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

var insertOrder = `
with o as (
  insert into orders."order" (id, status, customer_id, total_cents, version, ` + pgaudit.Columns + `)
  values ($1::uuid, $2, $3, $4, $5, ` + pgaudit.Values(7) + `)
  returning id, created_at
), i as (
  insert into orders.order_item (order_id, line, sku, quantity)
  select o.id, e.line, e.item ->> 'sku', (e.item ->> 'quantity')::int
  from o, jsonb_array_elements($6::jsonb) with ordinality as e (item, line)
)
select created_at from o`

// Insert stores the order and its items in one round trip.
func (Orders) Insert(ctx context.Context, t *tx.Tx, o domain.Order) (domain.Order, error) {
	q, err := postgres.Querier(t)
	if err != nil {
		return domain.Order{}, err
	}
	items := make([]item, len(o.Items))
	for i, it := range o.Items {
		items[i] = item(it)
	}
	list, err := json.Marshal(items)
	if err != nil {
		return domain.Order{}, err
	}
	err = q.QueryRow(ctx, insertOrder, o.ID, string(o.Status), o.CustomerID, o.TotalCents, o.Version, string(list), reqctx.Actor(ctx)).Scan(&o.CreatedAt)
	return o, err
}

const selectOrder = `
select o.id::text, o.status, o.customer_id, o.total_cents, o.version, o.created_at,
  (select jsonb_agg(jsonb_build_object('sku', i.sku, 'quantity', i.quantity) order by i.line)::text
   from orders.order_item i where i.order_id = o.id)
from orders."order" o
`

const findOrder = selectOrder + `where o.id = $1::uuid`

// Find returns the order with its items in one round trip.
func (Orders) Find(ctx context.Context, t *tx.Tx, id string) (domain.Order, error) {
	return find(ctx, t, findOrder, id)
}

// FindForUpdate is Find with the order's row locked.
func (Orders) FindForUpdate(ctx context.Context, t *tx.Tx, id string) (domain.Order, error) {
	return find(ctx, t, findOrder+` for update of o`, id)
}

var updateOrder = `update orders."order" set status = $2, version = $3, ` + pgaudit.Set(4) + ` where id = $1::uuid`

// Update stores status and version.
func (Orders) Update(ctx context.Context, t *tx.Tx, o domain.Order) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, updateOrder, o.ID, string(o.Status), o.Version, reqctx.Actor(ctx))
	return err
}

var shippedOrder = `update orders."order" set shipped = true, ` + pgaudit.Set(2) + ` where id = $1::uuid`

// Shipped notes that the order was shipped. Its version stays: what clients see of it does not change.
func (Orders) Shipped(ctx context.Context, t *tx.Tx, id string) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, shippedOrder, id, reqctx.Actor(ctx))
	return err
}

// staleOrders takes FOR UPDATE, and no less: the key of an order that is being shipped is shared with its shipment.
const staleOrders = selectOrder + `
where o.status = 'placed' and not o.shipped and o.created_at < (select clock_timestamp() - $1::bigint * interval '1 microsecond')
order by o.created_at limit $2::bigint for update of o skip locked`

// Stale returns the orders that are to expire, locked.
func (Orders) Stale(ctx context.Context, t *tx.Tx, age time.Duration, limit int) ([]domain.Order, error) {
	q, err := postgres.Querier(t)
	if err != nil {
		return nil, err
	}
	rows, err := q.Query(ctx, staleOrders, age.Microseconds(), limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (domain.Order, error) { return scan(row) })
}

func find(ctx context.Context, t *tx.Tx, sql, id string) (domain.Order, error) {
	if !isID(id) {
		return domain.Order{}, fault.New(fault.NotFound, "orders.Find", nil)
	}
	q, err := postgres.Querier(t)
	if err != nil {
		return domain.Order{}, err
	}
	o, err := scan(q.QueryRow(ctx, sql, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Order{}, fault.New(fault.NotFound, "orders.Find", nil)
	}
	return o, err
}

func scan(row pgx.Row) (domain.Order, error) {
	var o domain.Order
	var list string
	if err := row.Scan(&o.ID, &o.Status, &o.CustomerID, &o.TotalCents, &o.Version, &o.CreatedAt, &list); err != nil {
		return domain.Order{}, err
	}
	var items []item
	if err := json.Unmarshal([]byte(list), &items); err != nil {
		return domain.Order{}, err
	}
	for _, it := range items {
		o.Items = append(o.Items, domain.Item(it))
	}
	return o, nil
}

// isID reports whether s is a UUID in the one spelling that ids have here; uuid.Parse takes more than PostgreSQL does.
func isID(s string) bool {
	_, err := uuid.Parse(s)
	return err == nil && len(s) == len(uuid.UUID{}.String())
}
