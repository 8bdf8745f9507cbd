package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"caskeleton.dev/lock"
)

const (
	callTimeout = 5 * time.Second // bound on one call of the store, which the end of Run does not reach
	retryPause  = time.Second     // after a call that failed
	longestNap  = time.Minute     // clocks drift apart, and nodes are suspended: so often the store is asked for the time
)

// Scheduler runs jobs. Any number of schedulers may work on one store.
type Scheduler struct {
	driver  Driver
	locker  *lock.Locker
	jobs    []*job
	opts    Options
	health  health
	running atomic.Bool
	runs    sync.WaitGroup
}

// job is a Job in this scheduler.
type job struct {
	Job
	lease atomic.Pointer[lock.Lease] // of the run that has not returned in this process, nil for none
}

// New returns a scheduler of jobs that takes slots in d and keeps runs apart with locker. It adds one of its own, schedule.prune, which deletes old runs.
// All that is wrong with the jobs is told at once.
func New(d Driver, locker *lock.Locker, jobs []Job, o *Options) (*Scheduler, error) {
	s := &Scheduler{driver: d, locker: locker}
	if o != nil {
		s.opts = *o
	}
	if d == nil || locker == nil {
		return nil, errors.New("schedule: a driver and a locker are required; adapter/postgres/pgschedule and package lock have them")
	}
	if err := s.opts.fill(); err != nil {
		return nil, err
	}
	s.health.log = s.opts.Logger
	var errs []error
	seen := map[string]bool{}
	for _, j := range append(slices.Clone(jobs), s.pruning()) {
		errs = append(errs, j.validate())
		if seen[j.Name] {
			errs = append(errs, fmt.Errorf("schedule: there are two jobs %q; rename one", j.Name))
		}
		seen[j.Name] = true
		s.jobs = append(s.jobs, &job{Job: j})
	}
	return s, errors.Join(errs...)
}

// Jobs returns the names of the jobs, in their order.
func (s *Scheduler) Jobs() []string {
	names := make([]string, len(s.jobs))
	for i, j := range s.jobs {
		names[i] = j.Name
	}
	return names
}

// History returns the latest runs of a job, the latest slot first; limit is 1 to 1000.
func (s *Scheduler) History(ctx context.Context, job string, limit int) ([]Run, error) {
	if limit < 1 || limit > 1000 {
		return nil, fmt.Errorf("schedule: limit is %d; use 1 to 1000", limit)
	}
	return s.driver.History(ctx, job, limit)
}

// Run runs jobs until ctx is cancelled; failures of jobs, store or lock do not end it. Then it cancels the contexts of the runs that are on, waits for them,
// Options.DrainTimeout at most, and returns nil; or an error with the names of those that have not returned by then, whose goroutines are left behind.
func (s *Scheduler) Run(ctx context.Context) error {
	if !s.running.CompareAndSwap(false, true) {
		return errRunning
	}
	defer s.running.Store(false)
	instance := s.opts.Instance + "/" + rand.Text() // two that share a name must not take each other's slots for their own
	var loops sync.WaitGroup
	for _, j := range s.jobs {
		loops.Go(func() { s.loop(ctx, j, instance) })
	}
	loops.Wait()
	return s.drain()
}

// drain waits for the runs that are on.
func (s *Scheduler) drain() error {
	ended := make(chan struct{})
	go func() { // ends with the last run
		s.runs.Wait()
		close(ended)
	}()
	t := time.NewTimer(s.opts.DrainTimeout)
	defer t.Stop()
	select {
	case <-ended:
		return nil
	case <-t.C:
	}
	var left []string
	for _, j := range s.jobs {
		if j.lease.Load() != nil {
			left = append(left, j.Name)
		}
	}
	if len(left) == 0 { // what became of the last run is still being recorded, which is bounded
		return nil
	}
	return fmt.Errorf("schedule: jobs have not returned %v after their contexts ended: %s", s.opts.DrainTimeout, strings.Join(left, ", "))
}

// loop takes the slots of one job.
func (s *Scheduler) loop(ctx context.Context, j *job, instance string) {
	var seen time.Time // the last slot that was dealt with
	for ctx.Err() == nil {
		wake, err := s.look(ctx, j, instance, &seen)
		s.health.note(ctx, err)
		if err != nil {
			wake = time.Now().Add(retryPause)
		}
		t := time.NewTimer(time.Until(wake))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

// look deals with the slot that it is, if that is a new one, and returns when to look again.
func (s *Scheduler) look(ctx context.Context, j *job, instance string, seen *time.Time) (time.Time, error) {
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	now, err := s.driver.Now(asking)
	cancel()
	if err != nil {
		return time.Time{}, err
	}
	read := time.Now() // not before the store read its clock, so that nobody wakes up early
	if slot := j.When.Last(now).Truncate(time.Microsecond); slot.After(*seen) {
		if now.Sub(slot) <= s.opts.CatchUp {
			if err := s.begin(ctx, j, Claim{j.Name, slot, instance}); err != nil {
				return time.Time{}, err
			}
		}
		*seen = slot
	}
	nap := longestNap
	if next := j.When.Next(now); !next.IsZero() {
		nap = min(nap, next.Sub(now))
	}
	return read.Add(nap), nil
}
