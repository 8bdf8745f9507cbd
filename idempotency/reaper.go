package idempotency

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
)

const (
	defaultInterval = time.Minute
	defaultBatch    = 1000
	maxBatch        = 10_000
	maxIdle         = 10 // batches in a row without a record to delete, until the next pass goes on
)

// ReaperOptions configure a [Reaper]. The zero value is the default.
type ReaperOptions struct {
	Interval   time.Duration // between two passes; 0 means 1 min
	Batch      int           // records of one statement, at most 10,000; 0 means 1,000
	Reconciler Reconciler    // asked about each ABANDONED record in each pass; nil leaves them to operators
}

// Reaper deletes what has expired, finds what was interrupted, and deletes orphans of the response store. Any number may work at once.
type Reaper struct {
	guard *Guard
	opts  ReaperOptions

	mu   sync.Mutex
	next Cursor // where the last pass stopped to look for what has expired
}

// NewReaper returns a reaper of the records of g.
func NewReaper(g *Guard, o *ReaperOptions) (*Reaper, error) {
	r := &Reaper{guard: g}
	if o != nil {
		r.opts = *o
	}
	switch {
	case g == nil:
		return nil, errors.New("idempotency: a guard is required")
	case r.opts.Interval < 0:
		return nil, fmt.Errorf("idempotency: Interval is %v; it must be positive, or 0 for %v", r.opts.Interval, defaultInterval)
	case r.opts.Batch < 0 || r.opts.Batch > maxBatch:
		return nil, fmt.Errorf("idempotency: Batch is %d; use 1 to %d, or 0 for %d", r.opts.Batch, maxBatch, defaultBatch)
	}
	r.opts.Interval = cmp.Or(r.opts.Interval, defaultInterval)
	r.opts.Batch = cmp.Or(r.opts.Batch, defaultBatch)
	return r, nil
}

// Run makes a pass after each interval until ctx ends, and then returns nil. What fails is logged, and tried again in the next pass.
func (r *Reaper) Run(ctx context.Context) error {
	for backoff.Wait(ctx, backoff.Jitter(r.opts.Interval, 10)) == nil {
		if _, err := r.Pass(ctx); err != nil && ctx.Err() == nil {
			r.guard.opts.Logger.WarnContext(ctx, "idempotency records not all reaped; the next pass tries again", "error", fault.Reason(err))
		}
	}
	return nil
}

// Reaped is what a pass did.
type Reaped struct {
	Abandoned int // operations that were found interrupted
	Settled   int // by the Reconciler
	Deleted   int // records
	Orphans   int // objects of the response store
}

// Pass does everything once, in short statements. A step that fails does not keep it from the others.
func (r *Reaper) Pass(ctx context.Context) (done Reaped, err error) {
	g := r.guard
	var errs [4]error
	done.Abandoned, errs[0] = r.batches(ctx, g.driver.Expire)
	g.metrics.abandoned.Add(ctx, int64(done.Abandoned))
	done.Settled, errs[1] = r.reconcile(ctx)
	done.Deleted, errs[2] = r.reap(ctx)
	g.metrics.reaped.Add(ctx, int64(done.Deleted))
	done.Orphans, errs[3] = r.orphans(ctx)
	return done, errors.Join(errs[:]...)
}

// batches repeats a statement until it finds less than it may.
func (r *Reaper) batches(ctx context.Context, statement func(ctx context.Context, limit int) (int, error)) (total int, err error) {
	for {
		n, err := statement(ctx, r.opts.Batch)
		total += n
		if err != nil || n < r.opts.Batch {
			return total, err
		}
	}
}

// reap walks over the records that are old enough. What a route keeps for longer than the guard's options say is in its way, so that it pauses
// where there is much of it.
func (r *Reaper) reap(ctx context.Context) (total int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for idle := 0; idle < maxIdle; idle++ {
		n, next, err := r.guard.driver.Reap(ctx, r.guard.opts.Expiry, r.next, r.opts.Batch)
		if err != nil {
			return total, err
		}
		total += n
		if r.next = next; next == (Cursor{}) {
			break
		}
		if n > 0 {
			idle = -1
		}
	}
	return total, nil
}

// reconcile asks about each ABANDONED record. One that cannot be settled does not keep the others from it.
func (r *Reaper) reconcile(ctx context.Context) (settled int, err error) {
	if r.opts.Reconciler == nil {
		return 0, nil
	}
	var errs []error
	for after := (Cursor{}); ; {
		entries, err := r.guard.List(ctx, Abandoned, after, r.opts.Batch)
		if err != nil {
			return settled, errors.Join(append(errs, err)...)
		}
		for _, e := range entries {
			after = e.Cursor()
			s, err := r.opts.Reconciler(ctx, e)
			if err == nil && s.known {
				err = r.guard.Reconcile(ctx, e.Claim, s)
				if err == nil {
					settled++
				}
			}
			if err != nil && !errors.Is(err, ErrStale) { // else somebody else was faster
				errs = append(errs, fault.Textf("idempotency: reconcile %s: %w", e.Scope, err))
			}
		}
		if len(entries) < r.opts.Batch {
			return settled, errors.Join(errs...)
		}
	}
}

// orphans deletes the objects of records that are gone, or have another answer. An object that may yet be an answer is of an operation
// that has not ended, so that its age does not matter.
func (r *Reaper) orphans(ctx context.Context) (deleted int, err error) {
	objects := r.guard.opts.Responses
	if objects == nil {
		return 0, nil
	}
	for after := Ref(""); ; {
		refs, err := objects.List(ctx, after, r.opts.Batch)
		if err != nil || len(refs) == 0 {
			return deleted, err
		}
		after = refs[len(refs)-1]
		n, err := r.unreferenced(ctx, refs)
		deleted += n
		if err != nil {
			return deleted, err
		}
	}
}

// unreferenced deletes those of refs that are no answers. What is no ref is somebody else's object.
func (r *Reaper) unreferenced(ctx context.Context, refs []Ref) (deleted int, err error) {
	refs = slices.DeleteFunc(refs, func(ref Ref) bool {
		_, _, err := ref.Split()
		return err != nil
	})
	if len(refs) == 0 {
		return 0, nil
	}
	live, err := r.guard.driver.Live(ctx, refs)
	if err != nil {
		return 0, err
	}
	answers := make(map[Ref]bool, len(live))
	for _, ref := range live {
		answers[ref] = true
	}
	for _, ref := range refs {
		if answers[ref] {
			continue
		}
		if err := r.guard.opts.Responses.Delete(ctx, ref); err != nil {
			return deleted, err
		}
		deleted++
	}
	return deleted, nil
}
