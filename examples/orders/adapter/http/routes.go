// Package http is the order service's HTTP side: requests in, use cases called, answers out.
package http

import (
	"log/slog"
	"net/http"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/examples/orders/app"
	"caskeleton.dev/idempotency"
)

// Routes are what the routes call.
type Routes struct {
	Guard      *idempotency.Guard
	Place      app.PlaceOrder
	Get        app.GetOrder
	Cancel     app.CancelOrder
	ListEvents app.ListEvents
	Shipment   app.GetShipment
	Metrics    http.Handler
	Log        *slog.Logger
}

// Handler returns the service's routes.
func (r Routes) Handler() http.Handler {
	mux := httpapi.NewMux(r.Log)
	mux.Handle("POST /orders", httpapi.Transactional(r.Guard, httpapi.Policy{MaxBody: maxBody, Decode: decodeDraft, Logger: r.Log}, r.placeOrder))
	mux.HandleFunc("GET /orders/{id}", r.getOrder)
	mux.HandleFunc("POST /orders/{id}/cancel", r.cancelOrder)
	mux.HandleFunc("GET /orders/{id}/events", r.listEvents)
	mux.HandleFunc("GET /shipments/{order_id}", r.getShipment)
	mux.Handle("GET /metrics", r.Metrics)
	return mux
}
