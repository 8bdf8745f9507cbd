package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// MaxSubject is the longest [Action.Subject], in bytes. What has a longer name is named by a digest of it.
const MaxSubject = 1000

// Action is one thing that an operator did. It is kept for longer than what it was done to, so it has to describe that by itself.
type Action struct {
	Operator string          // who; required
	Verb     string          // what, as "idempotency.reconcile"; required
	Kind     string          // of what it was done to, as "idempotency_record"; required
	Subject  string          // which one; "" where a filter chose
	Filter   json.RawMessage // what chose, nil where that was not a filter
	Reason   string          // required
	Changed  int64           // how many really changed
	Before   json.RawMessage // what was there, and what became of it, as far as that says more than Changed; nil for nothing
	After    json.RawMessage
}

func (a Action) validate() error {
	for _, f := range []struct{ name, value string }{{"Operator", a.Operator}, {"Verb", a.Verb}, {"Kind", a.Kind}, {"Reason", a.Reason}} {
		if f.value == "" {
			return fmt.Errorf("audit: %s of the action is empty; say who did what to what, and why", f.name)
		}
	}
	for _, f := range []struct {
		name  string
		value json.RawMessage
	}{{"Filter", a.Filter}, {"Before", a.Before}, {"After", a.After}} {
		if f.value != nil && !json.Valid(f.value) {
			return fmt.Errorf("audit: %s of the action is no JSON; leave it nil for nothing", f.name)
		}
	}
	switch {
	case a.Subject == "" && a.Filter == nil:
		return errors.New("audit: the action names nothing that it was done to; give its Subject, or the Filter that chose")
	case len(a.Subject) > MaxSubject:
		return fmt.Errorf("audit: Subject of the action has %d bytes, and at most %d are kept; name it by a digest", len(a.Subject), MaxSubject)
	case a.Changed < 0:
		return fmt.Errorf("audit: Changed of the action is %d; it counts what changed", a.Changed)
	}
	return nil
}

// Entry is an action as it was kept.
type Entry struct {
	Action

	At time.Time // by the store's clock
}
