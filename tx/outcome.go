package tx

import (
	"context"
	"errors"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
)

// Outcome is what became of a transaction whose COMMIT got no answer.
type Outcome int

// The zero value is Unknown.
const (
	Unknown Outcome = iota
	Committed
	NotCommitted
)

// String returns the name for the log.
func (o Outcome) String() string {
	switch o {
	case Committed:
		return "committed"
	case NotCommitted:
		return "not_committed"
	}
	return "unknown"
}

// Resolver is an optional interface of a [Conn] that can find out what became of the transaction after Commit has returned
// DB_COMMIT_UNKNOWN.
type Resolver interface {
	// Resolve looks once, within ctx. Committed and NotCommitted are final: it must not be possible that the server still changes them.
	// Unknown without an error means that no later look can tell either; with one, that this look has failed and another may not.
	Resolve(ctx context.Context) (Outcome, error)
}

// Between two looks the runner waits, since a server that is restarting takes its time.
const (
	firstLook = 10 * time.Millisecond
	lastLook  = 500 * time.Millisecond
)

// resolve returns nil where the transaction turns out to have committed, DB_UNAVAILABLE where it turns out not to have, and unknown where
// nobody could tell within the bound. Like COMMIT, it goes on when the caller is gone.
func (c *core) resolve(ctx context.Context, conn Conn, unknown error) error {
	r, ok := conn.(Resolver)
	if !ok {
		return unknown
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.resolving)
	defer cancel()
	for look := 1; ; look++ {
		outcome, err := r.Resolve(ctx)
		switch {
		case outcome != Unknown:
			c.log.WarnContext(ctx, "outcome of a commit was found out", "outcome", outcome.String())
			if outcome == Committed {
				return nil
			}
			return notCommitted(unknown)
		case err == nil:
			return unknown
		}
		if backoff.Wait(ctx, backoff.Bound(firstLook, lastLook, look)) != nil {
			c.log.ErrorContext(ctx, "outcome of a commit stays unknown", "error", fault.Reason(err))
			return unknown
		}
	}
}

// notCommitted is an error without DB_COMMIT_UNKNOWN in its chain, which would take back what it says.
func notCommitted(unknown error) error {
	const text = "COMMIT got no answer; it was looked up, and the transaction has not committed"
	if e, ok := errors.AsType[*fault.Error](unknown); ok && e.Err != nil && !errors.Is(e.Err, fault.DBCommitUnknown) {
		return fault.New(fault.DBUnavailable, "tx.Commit", fault.Textf(text+": %w", e.Err))
	}
	return fault.New(fault.DBUnavailable, "tx.Commit", fault.Text(text))
}
