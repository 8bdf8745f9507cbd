package outboxtest_test

import (
	"context"
	"fmt"

	"caskeleton.dev/outbox"
	"caskeleton.dev/outbox/outboxtest"
	"caskeleton.dev/tx"
)

// placeOrder is a use case under test.
func placeOrder(ctx context.Context, runner *tx.Runner, ob *outbox.Outbox, id string) error {
	return runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
		return ob.Append(ctx, t, outbox.Event{Type: "order.placed", AggregateType: "order", AggregateID: id, Payload: []byte(`{}`)})
	})
}

func ExampleRecorder() {
	var rec outboxtest.Recorder
	runner, _ := tx.NewRunner(&rec, nil) // with a real store: its runner, and outboxtest.Recorder{Driver: pgoutbox.New(db)}
	ob, _ := outbox.New(&rec, nil)

	fmt.Println(placeOrder(context.Background(), runner, ob, "42"))
	for _, e := range rec.Events() {
		fmt.Println(e.Type, e.AggregateID)
	}
	// Output:
	// <nil>
	// order.placed 42
}
