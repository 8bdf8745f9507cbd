package outboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/outbox"
	"caskeleton.dev/outbox/outboxtest"
)

var errRefused = errors.New("refused")

// queue is a broker in memory and its publisher, with one bug at a time.
type queue struct {
	bug  string
	mu   sync.Mutex
	ids  []string
	down bool
}

func newBroker(bug string) outboxtest.Broker {
	q := &queue{bug: bug}
	return outboxtest.Broker{
		Publisher: q,
		Stored: func(context.Context) ([]string, error) {
			q.mu.Lock()
			defer q.mu.Unlock()
			return slices.Clone(q.ids), nil
		},
		Refused: func(e outbox.Event) outbox.Event { e.Type = ""; return e },
		Stop:    func(context.Context) error { return q.set(true) },
		Start:   func(context.Context) error { return q.set(false) },
	}
}

func (q *queue) set(down bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.down = down
	if q.bug == "forgets at a restart" && !down {
		q.ids = nil
	}
	return nil
}

func (q *queue) Publish(ctx context.Context, run []outbox.Event) (acked int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(run) == 0:
		return 0, nil
	case ctx.Err() != nil && q.bug == "blames the broker for the caller":
		return 0, fmt.Errorf("%w: %w", outbox.ErrBrokerDown, ctx.Err())
	case ctx.Err() != nil && q.bug != "ignores the context":
		return 0, ctx.Err()
	case q.down && q.bug == "blames the event for the broker":
		return 0, errRefused
	case q.down && q.bug == "acknowledges while down":
		return len(run), nil
	case q.down:
		return 0, outbox.ErrBrokerDown
	case q.bug == "acknowledges without storing":
		return len(run), nil
	case q.bug == "reorders":
		run = slices.Clone(run)
		slices.Reverse(run)
	}
	failed := error(nil)
	for _, e := range run {
		if e.Type == "" {
			failed = errRefused
			switch q.bug {
			case "stores after a failed event":
				continue
			case "acknowledges a failed event":
				return acked + 1, failed
			case "acknowledges nothing of a failed run":
				return 0, failed
			case "swallows the failure":
				return acked, nil
			case "blames the broker for the event":
				return acked, outbox.ErrBrokerDown
			}
			return acked, failed
		}
		if !slices.Contains(q.ids, e.ID) || q.bug == "stores a repeated id twice" {
			q.ids = append(q.ids, e.ID)
		}
		if failed == nil {
			acked++
		}
	}
	return acked, failed
}

func TestACorrectPublisherPasses(t *testing.T) {
	outboxtest.TestPublisher(t, outboxtest.PublisherHarness{New: func(*testing.T) outboxtest.Broker { return newBroker("") }})
}

func TestABrokenPublisherFails(t *testing.T) {
	suite.TestBroken(t, outboxtest.PublisherChecks(), map[string]string{
		"acknowledges without storing":         "what is acknowledged is stored",
		"reorders":                             "a run is stored in order",
		"stores a repeated id twice":           "the same id is stored once",
		"stores after a failed event":          "nothing is stored after a failed event",
		"acknowledges a failed event":          "nothing is stored after a failed event",
		"acknowledges nothing of a failed run": "nothing is stored after a failed event",
		"swallows the failure":                 "nothing is stored after a failed event",
		"blames the broker for the event":      "nothing is stored after a failed event",
		"blames the event for the broker":      "a broker that is down gets the rest later",
		"acknowledges while down":              "a broker that is down gets the rest later",
		"forgets at a restart":                 "a broker that is down gets the rest later",
		"ignores the context":                  "the context is respected",
		"blames the broker for the caller":     "the context is respected",
	}, func(_ *testing.T, bug string) outboxtest.Broker { return newBroker(bug) })
}
