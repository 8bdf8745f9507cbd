// Package domain holds what an order is and which rules it keeps, free of transport and storage.
package domain

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"caskeleton.dev/fault"
)

// Limits of an order.
const (
	MaxItems    = 100
	MaxQuantity = 1000
	maxNameLen  = 64 // of a customer id or a SKU, in characters
)

// Status is where an order stands.
type Status string

// The statuses of an order.
const (
	Placed    Status = "placed"
	Cancelled Status = "cancelled"
	Expired   Status = "expired" // it was not shipped in time, and is not shipped any more
)

// Item is one line of an order.
type Item struct {
	SKU      string
	Quantity int
}

// Order is what a customer ordered, and at which price in all.
type Order struct {
	ID         string // UUID
	Status     Status
	CustomerID string
	Items      []Item
	TotalCents int64
	Version    int64 // counts changes, from 1
	CreatedAt  time.Time
}

// Draft is an order as it was asked for.
type Draft struct {
	CustomerID string
	Items      []Item
}

// Validate returns every rule that d breaks, at once, as one REQUEST_INVALID.
func (d Draft) Validate() error {
	var f []fault.Field
	f = append(f, checkName("customer_id", d.CustomerID)...)
	switch {
	case len(d.Items) == 0:
		f = append(f, fault.Field{Path: "items", Problem: "is empty", Fix: "send at least one item"})
	case len(d.Items) > MaxItems:
		f = append(f, fault.Field{Path: "items", Problem: fmt.Sprintf("has %d items", len(d.Items)), Fix: fmt.Sprintf("send at most %d; split the order", MaxItems)})
	}
	for i, it := range d.Items[:min(len(d.Items), MaxItems)] {
		at := fmt.Sprintf("items[%d].", i)
		f = append(f, checkName(at+"sku", it.SKU)...)
		if it.Quantity < 1 || it.Quantity > MaxQuantity {
			f = append(f, fault.Field{Path: at + "quantity", Problem: fmt.Sprintf("is %d", it.Quantity), Fix: fmt.Sprintf("send 1 to %d", MaxQuantity)})
		}
	}
	if len(f) > 0 {
		return fault.Invalid("orders.Place", f...)
	}
	return nil
}

func checkName(path, s string) []fault.Field {
	n := utf8.RuneCountInString(s)
	switch {
	case s == "":
		return []fault.Field{{Path: path, Problem: "is missing or empty", Fix: fmt.Sprintf("send 1 to %d characters", maxNameLen)}}
	case n > maxNameLen:
		return []fault.Field{{Path: path, Problem: fmt.Sprintf("has %d characters", n), Fix: fmt.Sprintf("send at most %d", maxNameLen)}}
	case strings.TrimSpace(s) != s || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return []fault.Field{{Path: path, Problem: "has surrounding space or a control character", Fix: "send it without"}}
	}
	return nil
}

// Place turns a valid draft into an order, at the prices given in cents by SKU.
func Place(id string, d Draft, prices map[string]int64) (Order, error) {
	if err := d.Validate(); err != nil {
		return Order{}, err
	}
	var f []fault.Field
	var total int64
	for i, it := range d.Items {
		price, ok := prices[it.SKU]
		if !ok {
			f = append(f, fault.Field{Path: fmt.Sprintf("items[%d].sku", i), Problem: "is not a product", Fix: "send the SKU of a product on sale"})
		}
		total += price * int64(it.Quantity)
	}
	if len(f) > 0 {
		return Order{}, fault.Invalid("orders.Place", f...)
	}
	return Order{ID: id, Status: Placed, CustomerID: d.CustomerID, Items: d.Items, TotalCents: total, Version: 1}, nil
}

// Cancel returns o as cancelled, one version later, and whether that is a change: an order that is cancelled or expired stays as it is.
func (o Order) Cancel() (Order, bool) { return o.end(Cancelled) }

// Expire returns o as expired, one version later, and whether that is a change: only a placed order expires.
func (o Order) Expire() (Order, bool) { return o.end(Expired) }

func (o Order) end(s Status) (Order, bool) {
	if o.Status != Placed {
		return o, false
	}
	o.Status, o.Version = s, o.Version+1
	return o, true
}

// Shippable reports whether a shipment may be made of o. A cancelled order is shipped all the same, and comes back.
func (o Order) Shippable() bool { return o.Status != Expired }
