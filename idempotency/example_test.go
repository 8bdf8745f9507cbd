package idempotency_test

import (
	"context"
	"errors"
	"fmt"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/fault"
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

func ExampleDoExternal() {
	runner, _ := tx.NewRunner(memory.Transactions{}, nil)
	keys, _ := idempotency.NewKeyring("1", secret)
	guard, _ := idempotency.New(memory.NewRecords(nil), runner, keys, nil) // in a service: pgidempotency.New(db)

	key := idempotency.Key{Tenant: "acme", Principal: "ada", Method: "POST", Route: "/payments", Client: "7f9c2ba4"}
	fp := idempotency.NewFingerprint("POST", "/payments", "", "application/json", []byte(`{"amount":10}`))

	for range 2 {
		out, err := idempotency.DoExternal(context.Background(), guard, key, fp, func(_ context.Context, e *idempotency.Execution) (string, error) {
			fmt.Println("charging the card, under an idempotency key of", len(e.Key()), "characters")
			return "p-1", nil
		})
		fmt.Println(out.Value, out.Replayed, err)
	}
	// Output:
	// charging the card, under an idempotency key of 64 characters
	// p-1 false <nil>
	// p-1 true <nil>
}

// An operation that broke off is not run again until somebody has found out what it did.
func ExampleGuard_Reconcile() {
	ctx := context.Background()
	runner, _ := tx.NewRunner(memory.Transactions{}, nil)
	keys, _ := idempotency.NewKeyring("1", secret)
	guard, _ := idempotency.New(memory.NewRecords(nil), runner, keys, nil)

	key := idempotency.Key{Method: "POST", Route: "/payments", Client: "7f9c2ba4"}
	pay := func() {
		out, err := idempotency.DoExternal(ctx, guard, key, idempotency.Fingerprint{}, func(context.Context, *idempotency.Execution) (string, error) {
			return "", errors.New("the connection broke after the request was sent")
		})
		fmt.Printf("%q, replayed: %v, abandoned: %v, failed: %v\n", out.Value, out.Replayed, errors.Is(err, fault.IdempotencyAbandoned), err != nil)
	}
	pay()
	pay()

	abandoned, _ := guard.List(ctx, idempotency.Abandoned, idempotency.Cursor{}, 10)
	for _, e := range abandoned {
		fmt.Println(e.Route, "was paid:", guard.Reconcile(ctx, e.Claim, idempotency.CompletedWith("p-1")))
	}
	pay()
	// Output:
	// "", replayed: false, abandoned: false, failed: true
	// "", replayed: false, abandoned: true, failed: true
	// POST /payments was paid: <nil>
	// "p-1", replayed: true, abandoned: false, failed: false
}
