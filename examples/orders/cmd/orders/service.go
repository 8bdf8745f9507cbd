package main

import (
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

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/bootstrap"
	ordershttp "caskeleton.dev/examples/orders/adapter/http"
	"caskeleton.dev/examples/orders/adapter/postgres"
	"caskeleton.dev/examples/orders/app"
)

// newService puts the service together; bootstrap gives it what it stands on.
func newService() (bootstrap.Service, error) {
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
		Routes: func(a *bootstrap.App) (http.Handler, error) {
			var orders postgres.Orders
			return ordershttp.Routes{
				Guard:   a.Idempotency,
				Place:   app.PlaceOrder{Orders: orders, Products: postgres.Products{}, NewID: newID},
				Get:     app.GetOrder{Runner: a.Runner, Orders: orders},
				Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
				Log:     a.Log,
			}.Handler(), nil
		},
		Try: try,
	}, nil
}

// newID returns a version 7 UUID, whose order in time keeps inserts at one end of the index.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

func try(url string) string {
	place := `curl -si ` + url + `/orders -H 'Content-Type: application/json' -H "Idempotency-Key: $KEY" -d '{"customer_id":"ada","items":[{"sku":"tea","quantity":2}]}'`
	return `
In another terminal, place an order, send the same request again, and look at the numbers:

  KEY=try-$RANDOM; ` + place + `
  ` + place + `
  curl -s ` + url + `/metrics | grep idempotency
`
}
