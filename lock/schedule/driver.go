package schedule

import (
	"context"
	"time"
)

// Outcome is what became of a slot.
type Outcome string

// The outcomes.
const (
	Running   Outcome = "running"   // it has not ended
	Succeeded Outcome = "succeeded" // the job returned nil
	Failed    Outcome = "failed"    // the job returned an error or panicked, or its lock could not be asked for
	Overran   Outcome = "overran"   // the job returned after AtMost, when its lock was no longer its own
	Stopped   Outcome = "stopped"   // the job returned an error after its instance was told to stop
	Skipped   Outcome = "skipped"   // the run before was still on
	Abandoned Outcome = "abandoned" // AtMost passed without an end: the instance is gone, or the job does not heed its context
)

// Claim names a job's slot and who runs it.
type Claim struct {
	Job      string
	Slot     time.Time // whole microseconds
	Instance string    // unique among all that run the job
}

// Run is one row of the history.
type Run struct {
	Claim
	StartedAt  time.Time
	FinishedAt time.Time // zero where it has not ended
	Outcome    Outcome
	Reason     string // codes, operations and types, no values; at most 500 characters
}

// Driver keeps which slots were taken, by the store's own clock. No method joins a transaction of the caller's. Safe for concurrent use.
type Driver interface {
	// Now returns the store's clock.
	Now(ctx context.Context) (time.Time, error)
	// Begin takes the slot, and reports whether it is c.Instance's: it is not where another one has taken it before. It is safe to repeat until Finish.
	// A run that has not ended atMost later counts as [Abandoned].
	Begin(ctx context.Context, c Claim, atMost time.Duration) (bool, error)
	// Finish records how the run of c ended, once: it changes nothing where c has ended or was never begun.
	Finish(ctx context.Context, c Claim, o Outcome, reason string) error
	// History returns the runs of a job, the latest slot first, limit at most.
	History(ctx context.Context, job string, limit int) ([]Run, error)
	// Prune deletes runs whose slots are older than age, except the last keep of each job, limit at most, and returns how many.
	Prune(ctx context.Context, age time.Duration, keep, limit int) (int, error)
}
