package domain

import (
	"encoding/json"
	"fmt"

	"caskeleton.dev/outbox"
)

// Types of the events that other services may rely on.
const (
	OrderPlaced     = "order.placed"
	OrderCancelled  = "order.cancelled"
	OrderExpired    = "order.expired"
	ShipmentCreated = "shipment.created"
)

// OrderEvent is the payload of the order.* events.
type OrderEvent struct {
	OrderID    string      `json:"order_id"`
	CustomerID string      `json:"customer_id"`
	Items      []EventItem `json:"items"`
	TotalCents int64       `json:"total_cents"`
}

// EventItem is one line of an order in an event.
type EventItem struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
}

// ShipmentEvent is the payload of shipment.created.
type ShipmentEvent struct {
	ShipmentID string `json:"shipment_id"`
	OrderID    string `json:"order_id"`
}

// Event returns what happened to o, for the outbox.
func (o Order) Event(eventType string) (outbox.Event, error) {
	p := OrderEvent{OrderID: o.ID, CustomerID: o.CustomerID, Items: make([]EventItem, len(o.Items)), TotalCents: o.TotalCents}
	for i, it := range o.Items {
		p.Items[i] = EventItem(it)
	}
	return event(eventType, "order", o.ID, o.Version, p)
}

// Event returns that s was created, for the outbox.
func (s Shipment) Event() (outbox.Event, error) {
	return event(ShipmentCreated, "shipment", s.ID, 1, ShipmentEvent{ShipmentID: s.ID, OrderID: s.OrderID})
}

func event(eventType, aggregate, id string, version int64, payload any) (outbox.Event, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return outbox.Event{}, fmt.Errorf("orders: the payload of %s: %w", eventType, err)
	}
	return outbox.Event{Type: eventType, AggregateType: aggregate, AggregateID: id, AggregateVersion: version, Payload: body}, nil
}
