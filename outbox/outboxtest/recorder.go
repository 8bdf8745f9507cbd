package outboxtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// Recorder keeps what is appended, so that a test of a use case can say which events it recorded. It is an [outbox.Driver]; a relay finds
// nothing in it. It is also a [tx.Driver], of transactions that do nothing, for a use case whose other ports are fakes. The zero value
// is ready. Safe for concurrent use.
type Recorder struct {
	// Driver records the events as well, in a test with a real store, whose runner then begins the transactions; a relay is given the
	// driver itself. nil means that the events are only kept.
	Driver outbox.Driver

	mu     sync.Mutex
	events []outbox.Event
}

var (
	_ outbox.Driver = (*Recorder)(nil)
	_ tx.Driver     = (*Recorder)(nil)
)

// Events returns what committed transactions have appended, in the order of their commits: as [outbox.Outbox] passes it on, with ids and
// defaults.
func (r *Recorder) Events() []outbox.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Reset forgets what was appended before.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = nil
}

// Append implements [outbox.Driver]. The events count once t has committed.
func (r *Recorder) Append(ctx context.Context, t *tx.Tx, events []outbox.Event) error {
	if r.Driver != nil {
		if err := r.Driver.Append(ctx, t, events); err != nil {
			return err
		}
	}
	events = slices.Clone(events)
	return t.AfterCommit(func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, events...)
		return nil
	})
}

// Claim implements [outbox.Driver]: there is nothing to deliver.
func (*Recorder) Claim(context.Context, outbox.ClaimRequest) ([]outbox.Claim, error) { return nil, nil }

// Settle implements [outbox.Driver]: every claim is lost.
func (*Recorder) Settle(_ context.Context, settlements []outbox.Settlement) (lost []outbox.Lane, err error) {
	for _, s := range settlements {
		lost = append(lost, s.Claim.Lane)
	}
	return lost, nil
}

// Renew implements [outbox.Driver]: every claim is lost.
func (*Recorder) Renew(_ context.Context, claims []outbox.Claim, _ time.Duration) (lost []outbox.Lane, err error) {
	for _, c := range claims {
		lost = append(lost, c.Lane)
	}
	return lost, nil
}

// NextDue implements [outbox.Driver]: nothing ever is.
func (*Recorder) NextDue(context.Context) (in time.Duration, at time.Time, ok bool, err error) {
	return 0, time.Time{}, false, nil
}

// Begin implements [tx.Driver].
func (*Recorder) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) { return idle{}, nil }

// idle is a transaction of nothing.
type idle struct{}

func (idle) Commit(context.Context) error                  { return nil }
func (idle) Rollback(context.Context) error                { return nil }
func (idle) Savepoint(context.Context, string, bool) error { return nil }
func (idle) Release(context.Context, string) error         { return nil }
func (idle) RollbackTo(context.Context, string) error      { return nil }
