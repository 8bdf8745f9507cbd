package inbox_test

import (
	"context"
	"fmt"
	"testing"

	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

func ExampleInbox_Handle() {
	in, _ := newInbox(new(testing.T), newStore(), nil) // in a service: inbox.New(pginbox.New(db), runner, "shipping", nil)
	msg := inbox.Message{ID: "0198c0de", Type: "order.placed", Payload: []byte(`{"order":42}`)}

	for msg.Deliveries = 1; msg.Deliveries <= 2; msg.Deliveries++ {
		outcome, err := in.Handle(context.Background(), msg, func(_ context.Context, _ *tx.Tx) error {
			fmt.Println("shipping the order, with the transaction") // postgres.Querier(t), ob.Append(ctx, t, event)
			return nil
		})
		fmt.Println(outcome, err)
	}
	// Output:
	// shipping the order, with the transaction
	// handled <nil>
	// duplicate <nil>
}
