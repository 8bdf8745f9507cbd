package tx_test

import (
	"context"
	"fmt"

	"caskeleton.dev/tx"
)

func ExampleRunner_InWrite() {
	runner, _ := tx.NewRunner(&recorder{}, nil) // in a service: tx.NewRunner(db, nil), with db from adapter/postgres

	err := runner.InWrite(context.Background(), func(ctx context.Context, t *tx.Tx) error {
		if err := t.AfterCommit(func(context.Context) error { fmt.Println("after the commit"); return nil }); err != nil {
			return err
		}
		return runner.InWrite(ctx, func(context.Context, *tx.Tx) error { // joins
			fmt.Println("in the transaction")
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// in the transaction
	// after the commit
	// <nil>
}

func ExampleValue() {
	runner, _ := tx.NewRunner(&recorder{}, nil)

	id, err := tx.Value(context.Background(), runner.InWrite, func(context.Context, *tx.Tx) (int64, error) {
		return 42, nil // INSERT ... RETURNING id
	})
	fmt.Println(id, err)
	// Output: 42 <nil>
}

func ExampleTx_Savepoint() {
	runner, _ := tx.NewRunner(&recorder{}, nil)

	err := runner.InWrite(context.Background(), func(ctx context.Context, t *tx.Tx) error {
		err := t.Savepoint(ctx, func(context.Context) error { return errBoom })
		fmt.Println("undone:", err) // the transaction goes on
		return nil
	})
	fmt.Println("committed:", err == nil)
	// Output:
	// undone: boom
	// committed: true
}
