package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/pgtest"
)

const teaAndMug = `{"customer_id":"ada","items":[{"sku":"tea","quantity":2},{"sku":"mug","quantity":1}]}`

// problem is what a client reads of an error.
type problem struct {
	Type, Title, Code string
	Status            int
	RequestID         string `json:"request_id"`
	Errors            []struct{ Field, Problem, Fix string }
}

func TestAnOrderIsPlacedOnceAndFoundAgainAfterARestart(t *testing.T) {
	env := []string{"DATABASE_URL=" + pgtest.DSN(t), "APP_DATA_DIR=" + t.TempDir()}
	service := start(t, env...)

	first, err := place(t.Context(), service.url, "k1", teaAndMug)
	require.NoError(t, err)
	require.Equal(t, 201, first.status, first.body)
	require.False(t, first.replayed)
	require.Equal(t, `"1"`, first.etag)
	var order struct {
		ID, Status string
		CustomerID string `json:"customer_id"`
		Items      []struct {
			SKU      string
			Quantity int
		}
		TotalCents int64 `json:"total_cents"`
		Version    int64
		CreatedAt  string `json:"created_at"`
	}
	require.NoError(t, json.Unmarshal([]byte(first.body), &order))
	require.Equal(t, "/orders/"+order.ID, first.location)
	require.Equal(t, "placed", order.Status)
	require.Equal(t, "ada", order.CustomerID)
	require.Len(t, order.Items, 2)
	require.Equal(t, int64(2*450+1200), order.TotalCents)
	require.Equal(t, int64(1), order.Version)
	require.NotEmpty(t, order.CreatedAt)

	found, err := get(t.Context(), service.url+first.location)
	require.NoError(t, err)
	require.Equal(t, 200, found.status)
	require.Equal(t, first.body, found.body)
	require.Equal(t, `"1"`, found.etag)

	require.Zero(t, service.terminate(t), "SIGTERM is no failure: %s", service.stderr)
	service = start(t, env...)
	again, err := place(t.Context(), service.url, "k1", teaAndMug)
	require.NoError(t, err)
	require.True(t, again.replayed)
	again.replayed = false
	require.Equal(t, first, again)
	found, err = get(t.Context(), service.url+first.location)
	require.NoError(t, err)
	require.Equal(t, first.body, found.body)
}

func TestWhatIsRefused(t *testing.T) {
	service := start(t, "DATABASE_URL="+pgtest.DSN(t), "APP_DATA_DIR="+t.TempDir())
	first, err := place(t.Context(), service.url, "taken", teaAndMug)
	require.NoError(t, err)
	require.Equal(t, 201, first.status)

	item := func(quantity string) string {
		return `{"customer_id":"ada","items":[{"sku":"tea","quantity":` + quantity + `}]}`
	}
	for name, c := range map[string]struct {
		key, body string
		status    int
		code      string
		field     string
	}{
		"no key":              {"", teaAndMug, 400, "IDEMPOTENCY_KEY_REQUIRED", ""},
		"key with a space":    {"a b", teaAndMug, 400, "IDEMPOTENCY_KEY_INVALID", "Idempotency-Key"},
		"key too long":        {strings.Repeat("k", 256), teaAndMug, 400, "IDEMPOTENCY_KEY_INVALID", "Idempotency-Key"},
		"key used for else":   {"taken", item("1"), 422, "IDEMPOTENCY_KEY_REUSED", ""},
		"not JSON":            {"n1", `{"customer_id":`, 400, "REQUEST_INVALID", ""},
		"empty":               {"n2", ``, 400, "REQUEST_INVALID", ""},
		"unknown field":       {"n3", `{"customer_id":"ada","gift":true,"items":[{"sku":"tea","quantity":1}]}`, 400, "REQUEST_INVALID", "gift"},
		"duplicate field":     {"n4", `{"customer_id":"ada","customer_id":"bob","items":[{"sku":"tea","quantity":1}]}`, 400, "REQUEST_INVALID", "customer_id"},
		"trailing data":       {"n5", teaAndMug + `{}`, 400, "REQUEST_INVALID", ""},
		"invalid UTF-8":       {"n6", "{\"customer_id\":\"a\xff\",\"items\":[{\"sku\":\"tea\",\"quantity\":1}]}", 400, "REQUEST_INVALID", ""},
		"NUL":                 {"n7", `{"customer_id":"a\u0000b","items":[{"sku":"tea","quantity":1}]}`, 400, "REQUEST_INVALID", "customer_id"},
		"wrong type":          {"n8", item(`"2"`), 400, "REQUEST_INVALID", "items[0].quantity"},
		"quantity 0":          {"n9", item("0"), 422, "REQUEST_INVALID", "items[0].quantity"},
		"quantity negative":   {"n10", item("-1"), 422, "REQUEST_INVALID", "items[0].quantity"},
		"quantity over limit": {"n11", item("1001"), 422, "REQUEST_INVALID", "items[0].quantity"},
		"no items":            {"n12", `{"customer_id":"ada","items":[]}`, 422, "REQUEST_INVALID", "items"},
		"no such product":     {"n13", `{"customer_id":"ada","items":[{"sku":"gold","quantity":1}]}`, 422, "REQUEST_INVALID", "items[0].sku"},
		"too large":           {"n14", `{"customer_id":"` + strings.Repeat("a", 1<<17) + `"}`, 413, "BODY_TOO_LARGE", "body"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := place(t.Context(), service.url, c.key, c.body)
			require.NoError(t, err)
			require.Equal(t, c.status, a.status, a.body)
			var p problem
			require.NoError(t, json.Unmarshal([]byte(a.body), &p))
			require.Equal(t, c.code, p.Code)
			require.Equal(t, c.status, p.Status)
			require.NotEmpty(t, p.Title)
			require.NotEmpty(t, p.RequestID)
			if c.field != "" {
				require.NotEmpty(t, p.Errors, a.body)
				require.Equal(t, c.field, p.Errors[0].Field)
				require.NotEmpty(t, p.Errors[0].Fix)
			}
		})
	}

	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"/orders":     {405, "METHOD_NOT_ALLOWED"},
		"/nothing":    {404, "ROUTE_NOT_FOUND"},
		"/orders/abc": {404, "NOT_FOUND"},
		"/orders/018f4e6e-0000-7000-8000-000000000000":          {404, "NOT_FOUND"},
		"/orders/urn:uuid:018f4e6e-0000-7000-8000-000000000000": {404, "NOT_FOUND"}, // one address is enough
	} {
		a, err := get(t.Context(), service.url+path)
		require.NoError(t, err)
		require.Equal(t, want.status, a.status, path)
		require.Contains(t, a.body, want.code)
	}
}

func TestAnOrderIsShippedAndItsEventsAreListed(t *testing.T) {
	service := start(t, "DATABASE_URL="+pgtest.DSN(t), "APP_DATA_DIR="+t.TempDir())
	placed, err := place(t.Context(), service.url, "k", teaAndMug)
	require.NoError(t, err)
	order := strings.TrimPrefix(placed.location, "/orders/")

	var a answer
	require.Eventually(t, func() bool {
		a, err = get(t.Context(), service.url+"/shipments/"+order)
		return err == nil && a.status == 200
	}, startTimeout, 5*time.Millisecond, "never shipped")
	var shipment struct {
		ID      string
		OrderID string `json:"order_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(a.body), &shipment))
	require.Equal(t, order, shipment.OrderID)
	require.NotEmpty(t, shipment.ID)

	cancel := func(ifMatch string) answer {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, service.url+placed.location+"/cancel", nil)
		require.NoError(t, err)
		if ifMatch != "" {
			req.Header.Set("If-Match", ifMatch)
		}
		a, err := do(req)
		require.NoError(t, err)
		return a
	}
	require.Equal(t, 428, cancel("").status)
	require.Equal(t, 412, cancel(`"2"`).status)
	a = cancel(`"1"`)
	require.Equal(t, 200, a.status, a.body)
	require.Equal(t, `"2"`, a.etag)
	require.Contains(t, a.body, `"status":"cancelled"`)
	require.Equal(t, 412, cancel(`"1"`).status)
	require.Equal(t, 200, cancel(`"2"`).status, "it is cancelled, and stays so")

	var list struct {
		Events []struct {
			ID, Type string
			Sequence int64
			Data     struct {
				OrderID string `json:"order_id"`
			}
		}
	}
	require.Eventually(t, func() bool {
		a, err = get(t.Context(), service.url+placed.location+"/events")
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal([]byte(a.body), &list))
		return len(list.Events) == 2
	}, startTimeout, 5*time.Millisecond, "never published")
	for i, want := range []string{"order.placed", "order.cancelled"} {
		require.Equal(t, want, list.Events[i].Type)
		require.Equal(t, int64(i+1), list.Events[i].Sequence)
		require.Equal(t, order, list.Events[i].Data.OrderID)
	}
	for _, path := range []string{"/shipments/018f4e6e-0000-7000-8000-000000000000", "/orders/018f4e6e-0000-7000-8000-000000000000/events", "/shipments/x"} {
		a, err := get(t.Context(), service.url+path)
		require.NoError(t, err)
		require.Equal(t, 404, a.status, path)
	}
}

func TestProbesAndMetrics(t *testing.T) {
	service := start(t, "DATABASE_URL="+pgtest.DSN(t), "APP_DATA_DIR="+t.TempDir())
	for _, path := range []string{"/livez", "/readyz"} {
		a, err := get(t.Context(), service.url+path)
		require.NoError(t, err)
		require.Equal(t, 200, a.status, path)
	}
	_, err := place(t.Context(), service.url, "k", teaAndMug)
	require.NoError(t, err)
	a, err := get(t.Context(), service.url+"/metrics")
	require.NoError(t, err)
	require.Contains(t, a.body, `idempotency_claim_total{`)
	require.Contains(t, a.body, `db_pool_acquire_seconds_bucket{`)
}
