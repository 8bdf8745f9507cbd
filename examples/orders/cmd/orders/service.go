package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/bootstrap"
	ordershttp "caskeleton.dev/examples/orders/adapter/http"
	"caskeleton.dev/examples/orders/adapter/postgres"
	"caskeleton.dev/examples/orders/app"
	"caskeleton.dev/examples/orders/domain"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

// newService puts the service together; bootstrap gives it what it stands on.
func newService(getenv func(string) string) (bootstrap.Service, error) {
	set, err := readSettings(getenv)
	if err != nil {
		return bootstrap.Service{}, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return bootstrap.Service{}, fmt.Errorf("metrics: %w", err)
	}
	return bootstrap.Service{
		Name:    "orders",
		Streams: []migrations.Stream{{Name: "orders", Schema: "orders", FS: postgres.Migrations()}},
		Meter:   metric.NewMeterProvider(metric.WithReader(exporter), metric.WithResource(resource.NewSchemaless(attribute.String("service.name", "orders")))),
		Events:  &bootstrap.Events{Consumers: consumers},
		Jobs:    set.jobs,
		Routes: func(a *bootstrap.App) (http.Handler, error) {
			get := app.GetOrder{Runner: a.Runner, Orders: postgres.Orders{}}
			return ordershttp.Routes{
				Guard:      a.Idempotency,
				Place:      app.PlaceOrder{Orders: postgres.Orders{}, Products: postgres.Products{}, Events: a.Outbox, NewID: newID},
				Get:        get,
				Cancel:     app.CancelOrder{Runner: a.Runner, Orders: postgres.Orders{}, Events: a.Outbox},
				ListEvents: app.ListEvents{Orders: get, Events: pgoutbox.New(a.DB)},
				Shipment:   app.GetShipment{Runner: a.Runner, Shipments: postgres.Shipments{}},
				Metrics:    promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
				Log:        a.Log,
			}.Handler(), nil
		},
		Try: try,
	}, nil
}

// consumers returns who handles the service's own events: shipping makes a shipment of each order that was placed.
func consumers(a *bootstrap.App) []bootstrap.Consumer {
	ship := app.ShipOrder{Orders: postgres.Orders{}, Shipments: postgres.Shipments{}, Events: a.Outbox, NewID: newID}
	return []bootstrap.Consumer{{
		Name: "shipping", AggregateTypes: []string{"order"},
		Effects: map[string]natsbroker.Effect{
			domain.OrderPlaced: func(ctx context.Context, t *tx.Tx, m inbox.Message) error {
				var placed domain.OrderEvent
				if err := json.Unmarshal(m.Payload, &placed); err != nil {
					return fmt.Errorf("the payload of %s: %w", m.Type, err)
				}
				return ship.Do(ctx, t, placed)
			},
		},
	}}
}

// newID returns a version 7 UUID, whose order in time keeps inserts at one end of the index.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

func try(url string) string {
	place := `curl -si ` + url + `/orders -H 'Content-Type: application/json' -H "Idempotency-Key: $KEY" -d '{"customer_id":"ada","items":[{"sku":"tea","quantity":2}]}'`
	return `
In another terminal, place an order, send the same request again, and look at the numbers:

  KEY=try-$RANDOM; ` + place + `
  ` + place + `
  curl -s ` + url + `/orders/<the order's id>/events; curl -s ` + url + `/shipments/<the order's id>
`
}
