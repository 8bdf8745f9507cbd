package natsbroker_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// readOnlyInbox fails as an inbox does whose claim is refused, for a while.
type readOnlyInbox struct {
	mu       sync.Mutex
	left     int
	attempts []int
}

func (in *readOnlyInbox) Handle(ctx context.Context, m inbox.Message, fn func(ctx context.Context, t *tx.Tx) error) (inbox.Outcome, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.attempts = append(in.attempts, m.Deliveries)
	if in.left--; in.left >= 0 {
		return inbox.Failed, &fault.Error{Code: fault.DBReadOnly, After: tick}
	}
	return inbox.Handled, fn(ctx, nil)
}

// TestAClaimThatIsRefusedUsesNoAttemptsUp: after a fail-over that takes its time, messages would else be parked without ever having run.
func TestAClaimThatIsRefusedUsesNoAttemptsUp(t *testing.T) {
	b := newBroker(t)
	s := b.stream()
	publishAll(t.Context(), t, publisher(t, s), events("a", 1, 1))
	in := &readOnlyInbox{left: 12}
	effect := func(context.Context, *tx.Tx, inbox.Message) error { return nil }
	stop := consume(t, s, natsbroker.Route(in, map[string]natsbroker.Effect{"order.changed": effect}), natsbroker.ConsumerOptions{})
	b.settled(t)
	stop()
	require.Len(t, in.attempts, 13)
	for _, n := range in.attempts {
		require.Equal(t, 1, n)
	}
}

// TestAStreamThatDropsByTheSubjectIsRefused: discard new does not keep it from dropping events that nobody has read.
func TestAStreamThatDropsByTheSubjectIsRefused(t *testing.T) {
	b := newBroker(t)
	str, err := b.js().CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "events", Subjects: []string{"events.>"}, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
		Duplicates: time.Hour, MaxMsgsPerSubject: 1,
	})
	require.NoError(t, err)
	s := b.stream()
	n, err := publisher(t, s).Publish(t.Context(), events("a", 1, 2))
	info, infoErr := str.Info(t.Context())
	require.NoError(t, infoErr)
	require.EqualValues(t, n, info.State.Msgs, "what was acknowledged is there")
	var refused *natsbroker.NotDurableError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "max_msgs_per_subject", refused.Refusals[0].Setting)
}

// TestTheLargestEventOfTheOutboxFits: one that Append takes and the broker never would blocks its lane for ever.
func TestTheLargestEventOfTheOutboxFits(t *testing.T) {
	b := newBroker(t)
	e := event("a", 1)
	e.Headers = map[string]string{"a": strings.Repeat("ä", 8<<10-1)}
	e.Payload = make([]byte, natsbroker.PayloadLimit)
	n, err := publisher(t, b.stream()).Publish(t.Context(), []outbox.Event{e})
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
