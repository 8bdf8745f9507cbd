package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/audit"
	"caskeleton.dev/tx"
)

func newTrail(t *testing.T) (*audit.Trail, *tx.Runner) {
	t.Helper()
	runner, err := tx.NewRunner(memory.Transactions{}, nil)
	require.NoError(t, err)
	trail, err := audit.NewTrail(memory.NewActions())
	require.NoError(t, err)
	return trail, runner
}

func TestATrailRefusesWhatSaysTooLittle(t *testing.T) {
	trail, runner := newTrail(t)
	good := audit.Action{Operator: "ada", Verb: "lock.break", Kind: "lock", Subject: "invoices", Reason: "ticket-7"}
	record := func(spoil func(*audit.Action)) error {
		a := good
		spoil(&a)
		return runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error { return trail.Record(ctx, tr, a) })
	}
	for want, spoil := range map[string]func(*audit.Action){
		"Operator of the action is empty": func(a *audit.Action) { a.Operator = "" },
		"Verb of the action is empty":     func(a *audit.Action) { a.Verb = "" },
		"Kind of the action is empty":     func(a *audit.Action) { a.Kind = "" },
		"Reason of the action is empty":   func(a *audit.Action) { a.Reason = "" },
		"names nothing":                   func(a *audit.Action) { a.Subject = "" },
		"Subject of the action has 1001":  func(a *audit.Action) { a.Subject = strings.Repeat("x", audit.MaxSubject+1) },
		"Changed of the action is -1":     func(a *audit.Action) { a.Changed = -1 },
		"Filter of the action is no JSON": func(a *audit.Action) { a.Filter = json.RawMessage(`{`) },
		"Before of the action is no JSON": func(a *audit.Action) { a.Before = json.RawMessage{} },
		"After of the action is no JSON":  func(a *audit.Action) { a.After = json.RawMessage(`x`) },
	} {
		require.ErrorContains(t, record(spoil), want)
	}
	require.NoError(t, record(func(*audit.Action) {}))
	require.NoError(t, record(func(a *audit.Action) { a.Subject, a.Filter = "", json.RawMessage(`{"type":"a"}`) }))
	kept, err := trail.Of(t.Context(), "lock", "invoices", 10)
	require.NoError(t, err)
	require.Len(t, kept, 1)
}

func TestATrailIsReadWithinBounds(t *testing.T) {
	trail, _ := newTrail(t)
	for _, limit := range []int{-1, 0, 1001} {
		_, err := trail.Of(t.Context(), "lock", "a", limit)
		require.ErrorContains(t, err, "use 1 to 1000")
	}
	_, err := audit.NewTrail(nil)
	require.ErrorContains(t, err, "a driver is required")
}

func ExampleTrail() {
	ctx := context.Background()
	runner, _ := tx.NewRunner(memory.Transactions{}, nil)
	trail, _ := audit.NewTrail(memory.NewActions())
	free := func(change error) error {
		return runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
			if err := change; err != nil { // what the action does, in t
				return err
			}
			return trail.Record(ctx, t, audit.Action{
				Operator: "ada", Verb: "lock.break", Kind: "lock", Subject: "invoices/2026-07", Reason: "its holder hangs", Changed: 1,
			})
		})
	}
	fmt.Println(free(errors.New("nothing was changed")))
	fmt.Println(free(nil))
	actions, _ := trail.Of(ctx, "lock", "invoices/2026-07", 10)
	for _, a := range actions {
		fmt.Println(a.Operator, a.Verb, a.Reason, a.Changed)
	}
	// Output:
	// nothing was changed
	// <nil>
	// ada lock.break its holder hangs 1
}
