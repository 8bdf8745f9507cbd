package audit

import (
	"context"
	"errors"
	"fmt"

	"caskeleton.dev/tx"
)

// maxList is the most entries that are read at a time.
const maxList = 1000

// Driver keeps actions. It has no way to change or delete one. Safe for concurrent use.
type Driver interface {
	// Record keeps a valid action if, and only if, t commits.
	Record(ctx context.Context, t *tx.Tx, a Action) error
	// Of returns up to limit actions on one subject, the latest first.
	Of(ctx context.Context, kind, subject string, limit int) ([]Entry, error)
}

// Trail is what operators did. Safe for concurrent use.
type Trail struct{ driver Driver }

// NewTrail returns the trail that d keeps.
func NewTrail(d Driver) (*Trail, error) {
	if d == nil {
		return nil, errors.New("audit: a driver is required; adapter/postgres/pgaudit has one")
	}
	return &Trail{d}, nil
}

// Record keeps an action in the transaction of what it did: both take effect, or neither does. Where it fails, t must not commit.
func (r *Trail) Record(ctx context.Context, t *tx.Tx, a Action) error {
	if err := a.validate(); err != nil {
		return err
	}
	if err := r.driver.Record(ctx, t, a); err != nil {
		return fmt.Errorf("audit: %s was not recorded: %w", a.Verb, err)
	}
	return nil
}

// Of returns up to limit actions on one subject, the latest first; limit is 1 to 1,000.
func (r *Trail) Of(ctx context.Context, kind, subject string, limit int) ([]Entry, error) {
	if limit < 1 || limit > maxList {
		return nil, fmt.Errorf("audit: the limit is %d; use 1 to %d", limit, maxList)
	}
	return r.driver.Of(ctx, kind, subject, limit)
}
