package idempotency_test

import (
	"context"
	"fmt"
	"testing"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

func ExampleDo() {
	guard, _ := newGuard(new(testing.T), newStore(), nil) // in a service: idempotency.New(pgidempotency.New(db), runner, keys, nil)
	key := idempotency.Key{Tenant: "acme", Principal: "ada", Method: "POST", Route: "/orders", Client: "7f9c2ba4"}
	fp := idempotency.NewFingerprint("POST", "/orders", "", "application/json", []byte(`{"sku":"tea"}`))

	for range 2 {
		out, err := idempotency.Do(context.Background(), guard, key, fp, func(context.Context, *tx.Tx) (int64, error) {
			fmt.Println("placing the order")
			return 42, nil
		})
		fmt.Println(out.Value, out.Replayed, err)
	}
	// Output:
	// placing the order
	// 42 false <nil>
	// 42 true <nil>
}
