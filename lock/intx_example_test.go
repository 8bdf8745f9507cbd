package lock_test

import (
	"context"
	"errors"
	"fmt"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/testkit/stage"
	"caskeleton.dev/lock"
	"caskeleton.dev/tx"
)

func ExampleInTx() {
	tb, end := stage.New()
	defer end()
	ctx := tb.Context()
	db, err := postgres.Open(ctx, postgres.Config{DSN: pgtest.DSN(tb)}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close(context.WithoutCancel(ctx)) })
	runner, err := tx.NewRunner(db, nil)
	if err != nil {
		tb.Fatal(err)
	}
	// Both accounts are this transaction's until it commits, in whichever order another one names them.
	transfer := func(ctx context.Context, within func(context.Context) error) error {
		return runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
			if err := lock.InTx(ctx, t, 0, "account/7", "account/4"); err != nil {
				return err
			}
			return within(ctx)
		})
	}
	nothing := func(context.Context) error { return nil }
	fmt.Println(transfer(ctx, func(context.Context) error {
		err := transfer(ctx, nothing) // by another: it is not given this one's context, and so not its transaction
		fmt.Println("meanwhile, in time:", err == nil, errors.Is(err, fault.LockAcquisitionTimeout))
		return nil
	}))
	fmt.Println(transfer(ctx, nothing))
	// Output:
	// meanwhile, in time: false true
	// <nil>
	// <nil>
}
