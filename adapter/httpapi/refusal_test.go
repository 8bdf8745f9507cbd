package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/fault"
)

const bodyLimit = 256

func orderRoutes(m *httpapi.Mux) {
	m.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) error {
		body, err := httpapi.ReadBody(w, r, bodyLimit)
		if err != nil {
			return err
		}
		var in placeOrder
		if err := httpapi.Decode(body, &in); err != nil {
			return fmt.Errorf("place order: %w", err)
		}
		for i, it := range in.Items {
			if it.Quantity < 1 {
				return fault.Invalid("orders.Place", fault.Field{Path: fmt.Sprintf("items[%d].quantity", i), Problem: "must be at least 1", Fix: "send a larger quantity"})
			}
		}
		w.Header().Set("ETag", httpapi.ETag(1))
		w.WriteHeader(http.StatusCreated)
		return nil
	})
	m.HandleFunc("GET /orders/{id}", func(http.ResponseWriter, *http.Request) error { return fault.NotFound })
	for path, err := range map[string]error{
		"/uncoded":     fmt.Errorf("it broke"),
		"/nested":      fmt.Errorf("b: %w", fault.New(fault.DBUniqueViolation, "orders.Place", fmt.Errorf("23505 on orders_pkey"))),
		"/busy":        &fault.Error{Code: fault.IdempotencyInProgress, After: 1001 * time.Millisecond},
		"/down":        fault.New(fault.DBUnavailable, "postgres.Exec", nil),
		"/ours":        fault.New(fault.Internal, "outbox.Append", fault.Invalid("outbox.Append", fault.Field{Path: "event.type", Problem: "is empty", Fix: "name it"})),
		"/unknown-end": fault.New(fault.DBCommitUnknown, "tx.Commit", nil),
	} {
		m.HandleFunc("GET "+path, func(http.ResponseWriter, *http.Request) error { return err })
	}
	m.HandleFunc("GET /panics", func(http.ResponseWriter, *http.Request) error { panic("boom") })
}

// The expectations are written from the contracts (01-faults, 13-reference-service), not from what the code answers.
func TestRefusals(t *testing.T) {
	s := serve(t, orderRoutes)
	const json = "application/json"
	long := strings.Repeat("x", bodyLimit)
	for _, tt := range []struct {
		name         string
		method, path string
		contentType  string
		body         string
		status       int
		code, field  string
	}{
		{"no such route", "GET", "/nowhere", "", "", 404, "ROUTE_NOT_FOUND", ""},
		{"another method", "DELETE", "/orders", "", "", 405, "METHOD_NOT_ALLOWED", ""},
		{"a made-up method", "BREW", "/orders", "", "", 405, "METHOD_NOT_ALLOWED", ""},
		{"no such order", "GET", "/orders/1", "", "", 404, "NOT_FOUND", ""},
		{"no content type", "POST", "/orders", "", "{}", 415, "MEDIA_TYPE_UNSUPPORTED", "Content-Type"},
		{"text", "POST", "/orders", "text/plain", "{}", 415, "MEDIA_TYPE_UNSUPPORTED", "Content-Type"},
		{"json by suffix", "POST", "/orders", "application/merge-patch+json", "{}", 415, "MEDIA_TYPE_UNSUPPORTED", "Content-Type"},
		{"latin 1", "POST", "/orders", "application/json; charset=iso-8859-1", "{}", 415, "MEDIA_TYPE_UNSUPPORTED", "Content-Type"},
		{"another parameter", "POST", "/orders", "application/json; v=2", "{}", 415, "MEDIA_TYPE_UNSUPPORTED", "Content-Type"},
		{"a broken parameter", "POST", "/orders", "application/json; charset", "{}", 415, "MEDIA_TYPE_UNSUPPORTED", "Content-Type"},
		{"a long body", "POST", "/orders", json, `{"customer_id":"` + long + `"}`, 413, "BODY_TOO_LARGE", "body"},
		{"no body", "POST", "/orders", json, "", 400, "REQUEST_INVALID", "body"},
		{"blank body", "POST", "/orders", json, " \n", 400, "REQUEST_INVALID", "body"},
		{"no json", "POST", "/orders", json, "customer_id=7", 400, "REQUEST_INVALID", "body"},
		{"cut short", "POST", "/orders", json, `{"customer_id":"7`, 400, "REQUEST_INVALID", "customer_id"},
		{"unknown field", "POST", "/orders", json, `{"items":[{"sku":"a","qty":1}]}`, 400, "REQUEST_INVALID", "items[0].qty"},
		{"another case", "POST", "/orders", json, `{"Customer_id":"7"}`, 400, "REQUEST_INVALID", "Customer_id"},
		{"field given twice", "POST", "/orders", json, `{"items":[{"sku":"a","sku":"b"}]}`, 400, "REQUEST_INVALID", "items[0].sku"},
		{"field given twice, escaped", "POST", "/orders", json, `{"items":[],"\u0069tems":[]}`, 400, "REQUEST_INVALID", "items"},
		{"wrong type", "POST", "/orders", json, `{"items":[{"quantity":1},{"quantity":2},{"quantity":"3"}]}`, 400, "REQUEST_INVALID", "items[2].quantity"},
		{"fraction", "POST", "/orders", json, `{"items":[{"quantity":1.5}]}`, 400, "REQUEST_INVALID", "items[0].quantity"},
		{"out of range", "POST", "/orders", json, `{"items":[{"quantity":32768}]}`, 400, "REQUEST_INVALID", "items[0].quantity"},
		{"null", "POST", "/orders", json, `{"items":[{"sku":null}]}`, 400, "REQUEST_INVALID", "items[0].sku"},
		{"null for all", "POST", "/orders", json, `null`, 400, "REQUEST_INVALID", "body"},
		{"trailing data", "POST", "/orders", json, `{}{}`, 400, "REQUEST_INVALID", "body"},
		{"invalid UTF-8", "POST", "/orders", json, "{\"customer_id\":\"\xff\"}", 400, "REQUEST_INVALID", "customer_id"},
		{"half a surrogate", "POST", "/orders", json, `{"items":[{"sku":"\ud83d"}]}`, 400, "REQUEST_INVALID", "items[0].sku"},
		{"NUL", "POST", "/orders", json, `{"items":[{"sku":"a\u0000b"}]}`, 400, "REQUEST_INVALID", "items[0].sku"},
		{"too deep", "POST", "/orders", json, strings.Repeat("[", 33) + strings.Repeat("]", 33), 400, "REQUEST_INVALID", strings.Repeat("[0]", 32)},
		{"a rule broken", "POST", "/orders", json, `{"items":[{"sku":"a","quantity":1},{"sku":"b"}]}`, 422, "REQUEST_INVALID", "items[1].quantity"},
		{"no code", "GET", "/uncoded", "", "", 500, "INTERNAL", ""},
		{"panic", "GET", "/panics", "", "", 500, "INTERNAL", ""},
		{"a code inside", "GET", "/nested", "", "", 409, "DB_UNIQUE_VIOLATION", ""},
		{"our own bad input", "GET", "/ours", "", "", 500, "INTERNAL", ""},
		{"database away", "GET", "/down", "", "", 503, "DB_UNAVAILABLE", ""},
		{"unknown outcome", "GET", "/unknown-end", "", "", 503, "DB_COMMIT_UNKNOWN", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var header []string
			if tt.contentType != "" {
				header = []string{"Content-Type", tt.contentType}
			}
			a := s.do(t, tt.method, tt.path, tt.body, header...)
			p := a.problem(t)
			require.Equal(t, tt.status, a.StatusCode)
			require.Equal(t, tt.status, p.Status)
			require.Equal(t, tt.code, p.Code)
			require.Equal(t, "urn:caskeleton:problem:"+tt.code, p.Type)
			require.NotEmpty(t, p.Title)
			require.NotEmpty(t, p.RequestID)
			require.Equal(t, a.Header.Get("X-Request-Id"), p.RequestID)
			require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
			require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
			if tt.field == "" {
				require.Empty(t, p.Errors)
				return
			}
			require.Len(t, p.Errors, 1)
			require.Equal(t, tt.field, p.Errors[0].Path)
			require.NotEmpty(t, p.Errors[0].Problem)
			require.NotEmpty(t, p.Errors[0].Fix)
		})
	}
}

func TestAccepted(t *testing.T) {
	s := serve(t, orderRoutes)
	const body = `{"customer_id":"7","items":[{"sku":"a","quantity":32767}]}`
	for _, contentType := range []string{"application/json", "Application/JSON", "application/json; charset=utf-8", `application/json;CHARSET="UTF-8"`, "application/json;"} {
		a := s.do(t, "POST", "/orders", body, "Content-Type", contentType, "Content-Encoding", "Identity")
		require.Equal(t, http.StatusCreated, a.StatusCode, contentType)
		require.Equal(t, `"1"`, a.Header.Get("ETag"))
	}
	exact := body + strings.Repeat(" ", bodyLimit-len(body))
	require.Equal(t, http.StatusCreated, s.do(t, "POST", "/orders", exact, "Content-Type", "application/json").StatusCode)
	over := s.do(t, "POST", "/orders", exact+" ", "Content-Type", "application/json")
	require.Equal(t, http.StatusRequestEntityTooLarge, over.StatusCode)
}
