package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"caskeleton.dev/adapter/httpapi"
	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

func ExampleExternal() {
	// In a service: tx.NewRunner(db, nil), pgidempotency.New(db), and the secret from its configuration.
	runner, _ := tx.NewRunner(memory.Transactions{}, nil)
	keys, _ := idempotency.NewKeyring("1", bytes.Repeat([]byte("k"), idempotency.MinSecret))
	guard, _ := idempotency.New(memory.NewRecords(nil), runner, keys, nil)

	charge := func(w http.ResponseWriter, r *http.Request) {
		e, _ := httpapi.ExecutionFrom(r.Context())
		fmt.Println("charging, with a key of", len(e.Key()), "characters")
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, "charged")
	}
	mux := http.NewServeMux()
	mux.Handle("POST /charges", httpapi.External(guard, httpapi.Policy{})(http.HandlerFunc(charge)))

	for range 2 {
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/charges", strings.NewReader(`{"amount":5}`))
		r.Header.Set("Idempotency-Key", `"7f9c2ba4"`)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Printf("%d %s, replayed: %q\n", w.Code, w.Body, w.Header().Get("Idempotent-Replayed"))
	}
	// Output:
	// charging, with a key of 64 characters
	// 201 charged, replayed: ""
	// 201 charged, replayed: "true"
}
