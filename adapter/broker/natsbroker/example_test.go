package natsbroker_test

import (
	"context"
	"fmt"
	"os"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/adapter/broker/natsbroker/embedded"
	"caskeleton.dev/inbox"
	"caskeleton.dev/outbox"
)

// Two events go through a broker in this process, the first of them twice. A service gives NewConsumer a [natsbroker.Route] through its
// inbox, and publishes by outbox relay.
func Example() {
	if err := example(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// always
	// order.placed of order 42 {"total_cents":1250}
	// order.cancelled of order 42 {}
}

func example() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	dir, err := os.MkdirTemp("", "nats")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := embedded.Start(ctx, embedded.Options{DataDir: dir})
	if err != nil {
		return err
	}
	defer server.Shutdown()
	conn, err := natsbroker.Connect("", &natsbroker.ConnOptions{Name: "orders", Server: server})
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := natsbroker.NewStream(conn, &natsbroker.StreamOptions{Create: true})
	if err != nil {
		return err
	}
	durability, err := stream.Check(ctx)
	if err != nil {
		return err
	}
	fmt.Println(durability.Sync)

	publisher, err := natsbroker.NewPublisher(stream, nil)
	if err != nil {
		return err
	}
	placed := outbox.Event{ID: "1", Type: "order.placed", AggregateType: "order", AggregateID: "42", Sequence: 1, Payload: []byte(`{"total_cents":1250}`)}
	cancelled := outbox.Event{ID: "2", Type: "order.cancelled", AggregateType: "order", AggregateID: "42", Sequence: 2, Payload: []byte(`{}`)}
	for _, run := range [][]outbox.Event{{placed}, {placed, cancelled}} {
		if _, err := publisher.Publish(ctx, run); err != nil {
			return err
		}
	}
	consumer, err := natsbroker.NewConsumer(stream, "shipping", func(_ context.Context, m inbox.Message) (inbox.Outcome, error) {
		fmt.Println(m.Type, "of", m.AggregateType, m.AggregateID, string(m.Payload))
		if m.ID == "2" {
			stop()
		}
		return inbox.Handled, nil
	}, nil)
	if err != nil {
		return err
	}
	return consumer.Run(ctx)
}
