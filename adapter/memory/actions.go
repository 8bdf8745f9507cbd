package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"caskeleton.dev/audit"
	"caskeleton.dev/tx"
)

// Actions is an [audit.Driver] that keeps what operators did in this process, for transactions of [Transactions]. Safe for concurrent use.
type Actions struct {
	mu   sync.Mutex
	kept []audit.Entry
}

// NewActions returns a driver that has no actions.
func NewActions() *Actions { return &Actions{} }

// Record implements [audit.Driver].
func (d *Actions) Record(_ context.Context, t *tx.Tx, a audit.Action) error {
	s, err := sessionOf(t)
	if err != nil {
		return err
	}
	a.Filter, a.Before, a.After = slices.Clone(a.Filter), slices.Clone(a.Before), slices.Clone(a.After)
	e := audit.Entry{Action: a, At: time.Now()}
	return s.add("memory.Record", step{
		commit: func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.kept = append(d.kept, e)
		},
		undo: func() {},
	})
}

// Of implements [audit.Driver].
func (d *Actions) Of(ctx context.Context, kind, subject string, limit int) (found []audit.Entry, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range slices.Backward(d.kept) {
		if e.Kind == kind && e.Subject == subject && len(found) < limit {
			found = append(found, e)
		}
	}
	return found, nil
}
