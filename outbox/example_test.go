package outbox_test

import (
	"context"
	"fmt"
	"testing"

	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

func ExampleOutbox_Append() {
	ob, _, runner := newOutbox(new(testing.T), nil) // in a service: outbox.New(pgoutbox.New(db), nil)
	err := runner.InWrite(context.Background(), func(ctx context.Context, t *tx.Tx) error {
		// ... write the order, then, as the last thing, what happened to it.
		return ob.Append(ctx, t, outbox.Event{Type: "order.placed", AggregateType: "order", AggregateID: "42", Payload: []byte(`{"sku":"tea"}`)})
	})
	fmt.Println(err)
	fmt.Println(ob.Bell().Drain())

	err = runner.InWrite(context.Background(), func(ctx context.Context, t *tx.Tx) error {
		return ob.Append(ctx, t, outbox.Event{AggregateType: "order", AggregateID: "42\x00"})
	})
	for _, f := range fault.FieldsOf(err) {
		fmt.Printf("%s: %s %s; %s\n", fault.CodeOf(err), f.Path, f.Problem, f.Fix)
	}
	// Output:
	// <nil>
	// [{order 42}]
	// OUTBOX_EVENT_INVALID: events[0].type is missing; set it
	// OUTBOX_EVENT_INVALID: events[0].aggregate_id has a NUL byte at position 3; remove it: text cannot hold one
}
