package audittest_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/audit"
	"caskeleton.dev/audit/audittest"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx"
)

// broken is a driver that keeps its promises, but for one bug.
type broken struct {
	*memory.Actions

	bug string
}

func newStore(t *testing.T, bug string) audittest.Store {
	t.Helper()
	runner, err := tx.NewRunner(memory.Transactions{}, nil)
	require.NoError(t, err)
	return audittest.Store{Driver: &broken{memory.NewActions(), bug}, Runner: runner}
}

func (b *broken) Record(ctx context.Context, t *tx.Tx, a audit.Action) error {
	switch b.bug {
	case "records at once":
		other, err := tx.NewRunner(memory.Transactions{}, nil)
		if err != nil {
			return err
		}
		return other.InNew(ctx, func(ctx context.Context, t *tx.Tx) error { return b.Actions.Record(ctx, t, a) })
	case "records nothing":
		return nil
	case "drops the filter":
		a.Filter = nil
	case "counts in floating point":
		a.Changed = int64(float64(a.Changed))
	case "rounds numbers":
		var v any
		if err := json.Unmarshal(a.Before, &v); err == nil {
			a.Before, _ = json.Marshal(v)
		}
	case "nothing is null":
		if a.After == nil {
			a.After = json.RawMessage(`null`)
		}
	}
	return b.Actions.Record(ctx, t, a)
}

func (b *broken) Of(ctx context.Context, kind, subject string, limit int) ([]audit.Entry, error) {
	switch b.bug {
	case "forgets the limit":
		limit = 100
	case "ignores the kind":
		kinds := []string{"lock", "job", "outbox/event"}
		var all []audit.Entry
		for _, k := range kinds {
			some, err := b.Actions.Of(ctx, k, subject, limit)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
		return all, nil
	}
	entries, err := b.Actions.Of(ctx, kind, subject, limit)
	for i := range entries {
		switch b.bug {
		case "has no time":
			entries[i].At = time.Time{}
		case "the oldest first":
			if j := len(entries) - 1 - i; i < j {
				entries[i], entries[j] = entries[j], entries[i]
			}
		}
	}
	return entries, err
}

func TestACorrectDriverPasses(t *testing.T) {
	audittest.TestDriver(t, audittest.Harness{New: func(t *testing.T) audittest.Store {
		t.Helper()
		return newStore(t, "")
	}})
}

func TestABrokenDriverFails(t *testing.T) {
	suite.TestBroken(t, audittest.DriverChecks(), map[string]string{
		"records at once":          "an action comes with its commit",
		"records nothing":          "an action comes with its commit",
		"drops the filter":         "an action is kept as it was",
		"counts in floating point": "an action is kept as it was",
		"rounds numbers":           "an action is kept as it was",
		"nothing is null":          "an action is kept as it was",
		"has no time":              "an action is kept as it was",
		"forgets the limit":        "actions are found by what they were done to",
		"ignores the kind":         "actions are found by what they were done to",
		"the oldest first":         "actions are found by what they were done to",
	}, newStore)
}
