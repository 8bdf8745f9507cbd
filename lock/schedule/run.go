package schedule

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

// begin takes the slot of c and, where it got it, starts its run. An error means that nobody knows whose the slot is: it is safe to ask again.
func (s *Scheduler) begin(ctx context.Context, j *job, c Claim) error {
	current := j.lease.Load()
	if current != nil && ended(current.Done()) {
		s.opts.Logger.ErrorContext(ctx, "scheduled job has not returned after AtMost; this instance leaves its slots to others",
			"job", j.Name, "slot", c.Slot, "at_most", j.AtMost)
		return nil
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout) // a cancelled one could leave the slot taken by nobody
	defer cancel()
	if mine, err := s.driver.Begin(asking, c, j.AtMost); err != nil || !mine {
		return err
	}
	if current != nil {
		s.finish(ctx, c, Skipped, nil)
		return nil
	}
	lease, err := s.locker.Acquire(ctx, "job/"+j.Name, &lock.AcquireOptions{Lease: j.AtMost}) // Wait 0: whoever has it is the run before
	switch {
	case errors.Is(err, fault.LockAcquisitionTimeout):
		s.finish(ctx, c, Skipped, nil)
	case err != nil && ctx.Err() != nil:
		s.finish(ctx, c, Stopped, err)
	case err != nil:
		s.finish(ctx, c, Failed, err)
	default:
		j.lease.Store(lease)
		s.runs.Go(func() { s.run(ctx, j, c, lease) })
	}
	return nil
}

// run runs the job under its lease, and records how it ended.
func (s *Scheduler) run(ctx context.Context, j *job, c Claim, lease *lock.Lease) {
	began := time.Now()
	working, cancel := lease.Context(ctx)
	defer cancel()
	err := call(working, j.Run)
	j.lease.Store(nil) // from here on the lock alone says who may run
	outcome := Succeeded
	switch {
	case ended(lease.Done()):
		outcome = Overran
	case err != nil && ctx.Err() != nil:
		outcome = Stopped
	case err != nil:
		outcome = Failed
	}
	s.finish(ctx, c, outcome, err)

	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if rest := j.AtLeast - time.Since(began); rest > 0 && outcome != Overran {
		err = lease.Renew(settling, rest) // and it is left to expire: nobody has to stay for it
	} else {
		err = lease.Release(settling)
	}
	if err != nil && outcome != Overran { // an overrun has been told
		s.opts.Logger.WarnContext(ctx, "scheduled job's lock not given back; it expires", "job", j.Name, "slot", c.Slot, "error", fault.Reason(err))
	}
}

// call returns what fn returned, or that it panicked or ended its goroutine, which is one of its own.
func call(ctx context.Context, fn func(context.Context) error) (err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = &PanicError{p, debug.Stack()}
			}
		}()
		err = errGoexit
		err = fn(ctx)
	}()
	<-done
	return err
}

// finish records how a slot ended, whether or not ctx has.
func (s *Scheduler) finish(ctx context.Context, c Claim, o Outcome, err error) {
	why := fault.Reason(err)
	s.log(ctx, c, o, why, err)
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := s.driver.Finish(settling, c, o, why); err != nil {
		s.opts.Logger.WarnContext(ctx, "scheduled job's end not recorded; it will look abandoned", "job", c.Job, "slot", c.Slot, "outcome", o, "error", fault.Reason(err))
	}
}

func (s *Scheduler) log(ctx context.Context, c Claim, o Outcome, why string, err error) {
	args := []any{"job", c.Job, "slot", c.Slot, "outcome", o, "error", why}
	if p, ok := errors.AsType[*PanicError](err); ok {
		args = append(args, "stack", string(p.Stack))
	}
	switch o {
	case Failed, Overran:
		s.opts.Logger.ErrorContext(ctx, "scheduled job ended badly", args...)
	case Skipped, Stopped:
		s.opts.Logger.InfoContext(ctx, "scheduled job did not run to its end", args...)
	default:
		s.opts.Logger.DebugContext(ctx, "scheduled job ended", args...)
	}
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
