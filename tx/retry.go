package tx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
)

// Retry is when a transaction that ended with a serialization failure (40001) or a deadlock (40P01) is run again, the whole fn in a new
// transaction. The zero value means never. Waits have full jitter: they are random between 0 and a bound that doubles.
type Retry struct {
	Attempts int           // runs of fn at most, the first one included; 0 and 1 mean no retry
	Budget   time.Duration // no attempt begins later than this after the first one, at most 1 h; 0 means 5 s
	MinWait  time.Duration // bound on the first wait; 0 means 10 ms
	MaxWait  time.Duration // bound on any wait, at most 1 h; 0 means 1 s, or MinWait if that is more
}

// maxRetry also keeps sums of waits from overflowing.
const maxRetry = time.Hour

func (p Retry) validate() error {
	switch {
	case p.Attempts < 0:
		return fmt.Errorf("tx: Retry.Attempts is %d; it must be positive, or 0 for no retry", p.Attempts)
	case p.Budget < 0 || p.MinWait < 0 || p.MaxWait < 0:
		return errors.New("tx: Retry.Budget, Retry.MinWait and Retry.MaxWait must not be negative; 0 means the default")
	case max(p.Budget, p.MinWait, p.MaxWait) > maxRetry:
		return fmt.Errorf("tx: one of Retry.Budget, Retry.MinWait and Retry.MaxWait is %v; use at most %v: a caller waits for it", max(p.Budget, p.MinWait, p.MaxWait), maxRetry)
	case p.MaxWait > 0 && p.MinWait > p.MaxWait:
		return fmt.Errorf("tx: Retry.MinWait, %v, is more than Retry.MaxWait, %v; lower it", p.MinWait, p.MaxWait)
	}
	return nil
}

func (p Retry) withDefaults() Retry {
	if p.Budget == 0 {
		p.Budget = 5 * time.Second
	}
	if p.MinWait == 0 {
		p.MinWait = 10 * time.Millisecond
		if p.MaxWait > 0 {
			p.MinWait = min(p.MinWait, p.MaxWait)
		}
	}
	if p.MaxWait == 0 {
		p.MaxWait = max(time.Second, p.MinWait)
	}
	return p
}

// again reports whether err is one that a new attempt may not meet. That of a swallowed failure it would meet again.
func again(err error) bool {
	if errors.Is(err, fault.DBCommitUnknown) || errors.Is(err, ErrRollbackOnly) {
		return false
	}
	return errors.Is(err, fault.DBSerializationFailure) || errors.Is(err, fault.DBDeadlock)
}

// run is once, as often as the options allow.
func (r *Runner) run(ctx context.Context, readOnly bool, fn func(ctx context.Context, t *Tx) error) error {
	if r.opts.Retry.Attempts < 2 {
		return r.once(ctx, readOnly, fn)
	}
	p := r.opts.Retry.withDefaults()
	start := time.Now()
	for attempt := 1; ; attempt++ {
		err := r.once(ctx, readOnly, fn)
		if err == nil || !again(err) || attempt == p.Attempts {
			return err
		}
		wait := backoff.FullJitter(backoff.Bound(p.MinWait, p.MaxWait, attempt))
		if time.Since(start)+wait > p.Budget {
			return err
		}
		if backoff.Wait(ctx, wait) != nil {
			return err
		}
		r.log.DebugContext(ctx, "transaction is run again", "attempt", attempt+1, "error", fault.Reason(err))
	}
}
