package inbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
	"caskeleton.dev/tx"
)

// Handle runs fn for a message that has not taken effect yet, in a transaction that begins with the claim of the message: what fn does
// with t, and that the message is done, are committed together or not at all. The broker is told the outcome, and only afterwards: an
// acknowledgement that is lost leads to a redelivery, which is a [Duplicate].
//
// The error is nil unless the outcome is [Busy] or [Failed]; [fault.RetryAfter] of it says when to deliver again: exponential, with full
// jitter, never sooner than an error of fn asks for. Its text is fn's own and may hold values; Handle has logged what may be logged.
//
// A panic in fn counts as a failure, [PanicError], so that a poison message does not end its consumer. After DB_COMMIT_UNKNOWN the outcome
// is Failed: the redelivery is recognised, or runs if nothing was committed. An end of ctx by cancellation is nobody's failure: it is not
// counted and parks nothing. Handle begins the transaction itself: with one active it returns [tx.ErrNestedRoot]. A message whose key
// cannot be stored is refused with [ErrInvalidMessage].
func (in *Inbox) Handle(ctx context.Context, m Message, fn func(ctx context.Context, t *tx.Tx) error) (Outcome, error) {
	if in.runner.Active(ctx) {
		return Failed, fault.New(fault.TXNestedRoot, op, errNested)
	}
	if err := m.validate(); err != nil {
		in.metrics.count(ctx, Failed)
		return Failed, err
	}
	out, err := in.handle(ctx, m, fn)
	in.metrics.count(ctx, out)
	return out, err
}

func (in *Inbox) handle(ctx context.Context, m Message, fn func(ctx context.Context, t *tx.Tx) error) (Outcome, error) {
	attempt, counted := m.Deliveries, m.Deliveries > 0 && !m.Redelivered
	if !counted {
		// Counting comes before the wait for another delivery, so a burst of duplicates would use the attempts up.
		if _, open := in.open.LoadOrStore(m.ID, true); open {
			return Busy, in.again(attempt, fault.New(fault.DBLockTimeout, op, errOpen))
		}
		defer in.open.Delete(m.ID)
	}
	var verdict Verdict
	var err error
	if !counted && (m.Redelivered || in.first.Load() < int64(in.opts.CountFirst)) {
		if attempt, err = in.driver.Attempt(ctx, in.consumer, m.ID); err != nil {
			return in.notRun(ctx, m, attempt, err)
		}
		counted = true
		if attempt > 0 && !m.Redelivered { // duplicates do not use the first ones up: the message that ended the last process may come after any number of them
			in.first.Add(1)
		}
	}
	for {
		if attempt > in.opts.MaxAttempts {
			return in.park(ctx, m, attempt, fmt.Sprintf("attempt %d, and %d are allowed: the handler was not run again", attempt, in.opts.MaxAttempts))
		}
		verdict, err = in.run(ctx, m, counted, fn)
		if verdict != Retried || counted {
			break
		}
		if attempt, err = in.driver.Attempt(ctx, in.consumer, m.ID); err != nil {
			return in.notRun(ctx, m, attempt, err)
		}
		counted = true
	}
	switch {
	case verdict == Done:
		return Duplicate, nil
	case verdict == Settling:
		return Parked, nil
	case err == nil:
		return Handled, nil
	case verdict == 0:
		return in.notRun(ctx, m, attempt, err)
	}
	return in.failed(ctx, m, attempt, counted, err)
}

// run is one transaction: the claim and, unless it says otherwise, the handler. The verdict is 0 where there was no claim. One that has
// failed before is not run before it is counted.
func (in *Inbox) run(ctx context.Context, m Message, counted bool, fn func(ctx context.Context, t *tx.Tx) error) (verdict Verdict, err error) {
	err = in.runner.InRootWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
		var err error
		if verdict, err = in.driver.Claim(ctx, t, in.consumer, m.ID); err != nil {
			return err
		}
		if verdict == Done || verdict == Settling || verdict == Retried && !counted {
			return errNotRun
		}
		return call(ctx, t, fn)
	})
	return verdict, err
}

func call(ctx context.Context, t *tx.Tx, fn func(ctx context.Context, t *tx.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p, debug.Stack()}
		}
	}()
	return fn(ctx, t)
}

// failed deals with a handler that ran in vain.
func (in *Inbox) failed(ctx context.Context, m Message, attempt int, counted bool, err error) (Outcome, error) {
	why := fault.Reason(err)
	if errors.Is(ctx.Err(), context.Canceled) {
		return Failed, in.again(attempt, err)
	}
	if !counted {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		defer cancel()
		n, uncounted := in.driver.Attempt(bounded, in.consumer, m.ID)
		if uncounted != nil {
			in.opts.Logger.WarnContext(ctx, "inbox attempt not counted", "consumer", in.consumer, "message_id", m.ID, "error", fault.Reason(uncounted))
		}
		attempt = n
	}
	args := []any{"consumer", in.consumer, "message_id", m.ID, "attempt", attempt, "error", why}
	if p, ok := errors.AsType[*PanicError](err); ok {
		args = append(args, "stack", string(p.Stack))
	}
	in.opts.Logger.WarnContext(ctx, "inbox message failed", args...)
	if attempt >= in.opts.MaxAttempts {
		return in.park(ctx, m, attempt, why)
	}
	return Failed, in.again(attempt, err)
}

// park gives a message up, unless another delivery of it took effect.
func (in *Inbox) park(ctx context.Context, m Message, attempt int, why string) (Outcome, error) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	verdict, err := in.driver.Park(bounded, in.consumer, m.storable(), attempt, why)
	switch {
	case err != nil:
		return in.notRun(ctx, m, attempt, err)
	case verdict == Done:
		return Duplicate, nil
	case verdict != Settling:
		in.metrics.recoveryRequired.Add(ctx, 1)
		in.opts.Logger.ErrorContext(ctx, "inbox message parked, an operator has to settle it",
			"consumer", in.consumer, "message_id", m.ID, "attempts", attempt, "error", why)
	}
	return Parked, nil
}

// notRun is for what the store refused. Waiting too long for the row of the message means that another delivery has it open.
func (in *Inbox) notRun(ctx context.Context, m Message, attempt int, err error) (Outcome, error) {
	if errors.Is(err, fault.DBLockTimeout) {
		return Busy, in.again(attempt, err)
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		in.opts.Logger.WarnContext(ctx, "inbox message not run", "consumer", in.consumer, "message_id", m.ID, "error", fault.Reason(err))
	}
	return Failed, in.again(attempt, err)
}

// again adds to err when the message should be delivered again.
func (in *Inbox) again(attempt int, err error) error {
	after, _ := fault.RetryAfter(err)
	return &fault.Error{Code: fault.CodeOf(err), Op: op, Err: err, After: max(after, backoff.FullJitter(backoff.Bound(in.opts.BaseDelay, in.opts.MaxDelay, attempt)))}
}
