package outbox_test

import (
	"context"
	"fmt"

	"caskeleton.dev/outbox"
)

// printer is a broker that prints.
type printer struct{ printed chan struct{} }

func (p printer) Publish(_ context.Context, run []outbox.Event) (int, error) {
	for _, e := range run {
		fmt.Println(e.Sequence, e.Type, e.AggregateID)
	}
	close(p.printed)
	return len(run), nil
}

func ExampleRelay() {
	driver := newStore() // in a service: pgoutbox.New(db)
	broker := printer{make(chan struct{})}
	bell := outbox.NewBell()
	relay, err := outbox.NewRelay(driver, outbox.Route(nil, broker), &outbox.RelayOptions{Bell: bell, Logger: quiet})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- relay.Run(ctx) }()

	order := driver.add("42", 2)    // in a service: Append, in a transaction
	bell.Ring([]outbox.Lane{order}) // in a service: Append does it, after the commit
	<-broker.printed
	cancel()
	fmt.Println(<-ended)
	// Output:
	// 1 order.placed 42
	// 2 order.placed 42
	// <nil>
}
