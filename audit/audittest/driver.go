package audittest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"caskeleton.dev/audit"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx"
)

// Harness makes what the tests of this package test.
type Harness struct {
	// New returns a store that no other check uses: they run in parallel. It cleans up by t.Cleanup.
	New func(t *testing.T) Store
}

// Store keeps the actions under test, none at first.
type Store struct {
	Driver audit.Driver
	Runner *tx.Runner // begins the transactions that Driver records in
}

// TestDriver checks what [audit.Driver] promises, each promise in a subtest of its name.
func TestDriver(t *testing.T, h Harness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("audittest: Harness.New is required: let it return an empty store")
	}
	suite.Test(t, driverChecks(), h.New)
}

func driverChecks() []suite.Check[Store] {
	return []suite.Check[Store]{
		{Name: "an action comes with its commit", Run: commits},
		{Name: "an action is kept as it was", Run: kept},
		{Name: "actions are found by what they were done to", Run: found},
	}
}

// errRollback ends a transaction of a check without a commit.
var errRollback = errors.New("audittest: rolled back on purpose")

func action(subject string) audit.Action {
	return audit.Action{Operator: "ada", Verb: "lock.break", Kind: "lock", Subject: subject, Reason: "ticket-7", Changed: 1}
}

// records keeps an action in a transaction that ends with result.
func (s Store) records(ctx context.Context, a audit.Action, result error) {
	err := s.Runner.InRootWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
		suite.Must(s.Driver.Record(ctx, t, a), "recording")
		suite.Equal(0, len(s.of(ctx, a.Kind, a.Subject, 10)), "actions seen by others before the commit")
		return result
	})
	if result != nil && errors.Is(err, result) {
		err = nil
	}
	suite.Must(err, "transaction")
}

func (s Store) of(ctx context.Context, kind, subject string, limit int) []audit.Entry {
	entries, err := s.Driver.Of(ctx, kind, subject, limit)
	suite.Must(err, "reading")
	return entries
}

func commits(ctx context.Context, s Store) {
	s.records(ctx, action("a"), errRollback)
	suite.Equal(0, len(s.of(ctx, "lock", "a", 10)), "actions after a rollback")
	s.records(ctx, action("a"), nil)
	suite.Equal(1, len(s.of(ctx, "lock", "a", 10)), "actions after a commit")
}

// kept compares JSON by what it says, which is what a store may keep of it.
func kept(ctx context.Context, s Store) {
	full := audit.Action{
		Operator: "żółw", Verb: "outbox.replay", Kind: "outbox/event", Subject: strings.Repeat("ä", audit.MaxSubject/2), Reason: `it said "no" to 'all' of \x00`,
		Changed: 1<<53 + 1, Filter: json.RawMessage(`{"until":"2026-01-02","type":["a","b"]}`), Before: json.RawMessage(`{"revision":9007199254740993,"who":null}`), After: json.RawMessage(`[]`),
	}
	for what, a := range map[string]audit.Action{"an action with all": full, "an action with little": action("b")} {
		s.records(ctx, a, nil)
		entries := s.of(ctx, a.Kind, a.Subject, 10)
		suite.Equal(1, len(entries), what)
		got := entries[0]
		if d := time.Since(got.At); d < -time.Hour || d > time.Hour {
			suite.Fail("%s was recorded at %v, which is not now", what, got.At)
		}
		for part, pair := range map[string][2]json.RawMessage{
			"filter": {a.Filter, got.Filter}, "state before": {a.Before, got.Before}, "state after": {a.After, got.After},
		} {
			if !same(pair[0], pair[1]) {
				suite.Fail("%s of %s: want %s, got %s", part, what, pair[0], pair[1])
			}
		}
		got.Filter, got.Before, got.After = a.Filter, a.Before, a.After
		suite.Equal(a, got.Action, what)
	}
}

// same tells whether two texts say the same in JSON. Neither may be missing alone.
func same(want, got json.RawMessage) bool {
	if want == nil || got == nil {
		return want == nil && got == nil
	}
	parse := func(text json.RawMessage) (v any) {
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		suite.Must(d.Decode(&v), "what was kept")
		return v
	}
	return reflect.DeepEqual(parse(want), parse(got))
}

func found(ctx context.Context, s Store) {
	for i := range 3 {
		a := action("a")
		a.Reason = fmt.Sprint(i)
		suite.Must(s.Runner.InRootWrite(ctx, func(ctx context.Context, t *tx.Tx) error { return s.Driver.Record(ctx, t, a) }), "recording")
	}
	other := action("a")
	other.Kind = "job"
	s.records(ctx, other, nil)
	s.records(ctx, action("A"), nil)
	filtered := action("")
	filtered.Filter = json.RawMessage(`{}`)
	suite.Must(s.Runner.InRootWrite(ctx, func(ctx context.Context, t *tx.Tx) error { return s.Driver.Record(ctx, t, filtered) }), "recording what a filter chose")

	var reasons []string
	entries := s.of(ctx, "lock", "a", 10)
	for i, e := range entries {
		reasons = append(reasons, e.Reason)
		if i > 0 && e.At.After(entries[i-1].At) {
			suite.Fail("an earlier action has a later time: %v after %v", e.At, entries[i-1].At)
		}
	}
	suite.Equal([]string{"2", "1", "0"}, reasons, "actions, the latest first")
	latest := s.of(ctx, "lock", "a", 2)
	suite.Equal(true, len(latest) == 2 && latest[0].Reason == "2", "the 2 latest actions")
	suite.Equal(0, len(s.of(ctx, "lock", "b", 10)), "actions on what nothing was done to")
}
