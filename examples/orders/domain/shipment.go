package domain

import "time"

// Shipment is the sending of one order.
type Shipment struct {
	ID        string // UUID
	OrderID   string
	CreatedAt time.Time
}
