package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/fault"
)

func ExampleMux_HandleFunc() {
	mux := httpapi.NewMux(nil)
	mux.HandleFunc("GET /orders/{id}", func(http.ResponseWriter, *http.Request) error {
		return fault.New(fault.NotFound, "orders.Get", errors.New("no row for 7"))
	})
	h := httpapi.Wrap(mux, nil)

	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/orders/7", nil)
	r.Header.Set("X-Request-Id", "r-1")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Header().Get("Content-Type"))
	fmt.Println(w.Body)
	// Output:
	// 404 application/problem+json
	// {"type":"urn:caskeleton:problem:NOT_FOUND","title":"There is no such resource.","status":404,"code":"NOT_FOUND","request_id":"r-1"}
}

func ExampleWriteProblem() {
	err := fault.Invalid("orders.Place", fault.Field{
		Path: "items[2].quantity", Problem: "must be between 1 and 1000", Fix: "split the order",
	})
	w := httptest.NewRecorder()
	httpapi.WriteProblem(w, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/orders", nil), err, nil)
	fmt.Println(strings.ReplaceAll(w.Body.String(), `,"`, ",\n\""))
	// Output:
	// {"type":"urn:caskeleton:problem:REQUEST_INVALID",
	// "title":"The request is not valid.",
	// "status":422,
	// "code":"REQUEST_INVALID",
	// "errors":[{"field":"items[2].quantity",
	// "problem":"must be between 1 and 1000",
	// "fix":"split the order"}]}
}

func ExampleDecode() {
	var order struct {
		Items []struct {
			SKU      string `json:"sku"`
			Quantity int16  `json:"quantity"`
		} `json:"items"`
	}
	for _, body := range []string{
		`{"items":[{"sku":"a","quantity":1}]}`,
		`{"items":[{"sku":"a","quantity":"1"}]}`,
		`{"items":[{"sku":"a","Quantity":1}]}`,
	} {
		err := httpapi.Decode([]byte(body), &order)
		fmt.Println(fault.FieldsOf(err))
	}
	// Output:
	// []
	// [{items[0].quantity is not a whole number between -32768 and 32767 send a whole number between -32768 and 32767}]
	// [{items[0].Quantity is not a known field remove it, or check its spelling and case}]
}

func ExampleETag() {
	fmt.Println(httpapi.ETag(3))
	// Output: "3"
}
