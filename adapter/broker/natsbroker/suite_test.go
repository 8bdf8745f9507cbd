package natsbroker_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"caskeleton.dev/outbox"
	"caskeleton.dev/outbox/outboxtest"
)

func TestConformance(t *testing.T) {
	outboxtest.TestPublisher(t, outboxtest.PublisherHarness{New: func(t *testing.T) outboxtest.Broker {
		t.Helper()
		b := newBroker(t)
		return outboxtest.Broker{
			Publisher: publisher(t, b.stream()),
			Stored: func(ctx context.Context) ([]string, error) {
				_, err := b.js().Stream(ctx, "events")
				if errors.Is(err, jetstream.ErrStreamNotFound) { // it is made by the first event
					return nil, nil
				}
				return b.stored(), err
			},
			Refused: func(e outbox.Event) outbox.Event {
				e.Payload = []byte(strings.Repeat("x", 2<<20)) // more than a server takes
				return e
			},
			Stop:  func(context.Context) error { b.srv.Shutdown(); return nil },
			Start: func(context.Context) error { b.start(); return nil },
		}
	}})
}
