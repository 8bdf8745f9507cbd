package natsbroker

import (
	"context"

	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

// Handler makes a message take effect. Its outcome decides what the broker is told; the delay of Busy and Failed is fault.RetryAfter of the
// error, or else grows with the attempts. A message that is [inbox.ErrInvalidMessage] is dropped. It is called for different aggregates at
// once.
type Handler func(ctx context.Context, m inbox.Message) (inbox.Outcome, error)

// Inbox is the part of *inbox.Inbox that a consumer needs.
type Inbox interface {
	Handle(ctx context.Context, m inbox.Message, fn func(ctx context.Context, t *tx.Tx) error) (inbox.Outcome, error)
}

var _ Inbox = (*inbox.Inbox)(nil)

// Effect is what a message of one type does, in the inbox's transaction.
type Effect func(ctx context.Context, t *tx.Tx, m inbox.Message) error

// Route returns the handler that runs the effect of a message's type through in. A message of any other type is acknowledged and leaves
// no trace, so that a publisher may add types before its consumers know them.
func Route(in Inbox, effects map[string]Effect) Handler {
	return func(ctx context.Context, m inbox.Message) (inbox.Outcome, error) {
		effect, ok := effects[m.Type]
		if !ok {
			return inbox.Handled, nil
		}
		ran := false
		outcome, err := in.Handle(ctx, m, func(ctx context.Context, t *tx.Tx) error {
			ran = true
			return effect(ctx, t, m)
		})
		if outcome == inbox.Failed && !ran {
			err = notRunError{err}
		}
		return outcome, err
	}
}

// notRunError says that the inbox failed before the effect was tried, so that nothing is known against the message. Without it a database
// that takes no writes for some minutes, or a missing grant, would use up the attempts of all messages that wait, and have them parked
// untried when it is mended.
type notRunError struct{ err error }

func (e notRunError) Error() string { return e.err.Error() }
func (e notRunError) Unwrap() error { return e.err }
