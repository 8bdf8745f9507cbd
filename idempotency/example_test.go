package idempotency_test

import (
	"context"
	"fmt"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

func ExampleDo() {
	driver := newStore() // in a service: pgidempotency.New(db), and tx.NewRunner(db, nil)
	runner, _ := tx.NewRunner(driver, nil)
	keys, _ := idempotency.NewKeyring("1", secret)
	guard, _ := idempotency.New(driver, runner, keys, nil)

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
