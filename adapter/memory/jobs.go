package memory

import (
	"context"
	"slices"
	"sync"
	"time"

	"caskeleton.dev/lock/schedule"
)

// Jobs implements [schedule.Driver] for schedulers of one process. What it knows ends with the process. Safe for concurrent use.
type Jobs struct {
	mu   sync.Mutex
	runs map[string][]*jobRun // by job, in the order of their slots
}

type jobRun struct {
	schedule.Run
	deadline time.Time
}

var _ schedule.Driver = (*Jobs)(nil)

// NewJobs returns an empty history.
func NewJobs() *Jobs { return &Jobs{runs: map[string][]*jobRun{}} }

// now has no finer parts than other stores keep.
func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Now implements [schedule.Driver].
func (*Jobs) Now(ctx context.Context) (time.Time, error) { return now(), ctx.Err() }

func (s *Jobs) find(c schedule.Claim) (int, bool) {
	return slices.BinarySearchFunc(s.runs[c.Job], c.Slot, func(r *jobRun, slot time.Time) int { return r.Slot.Compare(slot) })
}

// Begin implements [schedule.Driver].
func (s *Jobs) Begin(ctx context.Context, c schedule.Claim, atMost time.Duration) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return false, err
	}
	i, found := s.find(c)
	if found {
		r := s.runs[c.Job][i]
		return r.Instance == c.Instance && r.FinishedAt.IsZero(), nil
	}
	at := now()
	r := &jobRun{schedule.Run{Claim: c, StartedAt: at, Outcome: schedule.Running}, at.Add(atMost)}
	s.runs[c.Job] = slices.Insert(s.runs[c.Job], i, r)
	return true, nil
}

// Finish implements [schedule.Driver].
func (s *Jobs) Finish(ctx context.Context, c schedule.Claim, o schedule.Outcome, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if i, found := s.find(c); found {
		if r := s.runs[c.Job][i]; r.Instance == c.Instance && r.FinishedAt.IsZero() {
			r.FinishedAt, r.Outcome, r.Reason = now(), o, reason
		}
	}
	return nil
}

// History implements [schedule.Driver].
func (s *Jobs) History(ctx context.Context, job string, limit int) ([]schedule.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var runs []schedule.Run
	for _, r := range slices.Backward(s.runs[job]) {
		if len(runs) == limit {
			break
		}
		run := r.Run
		if run.FinishedAt.IsZero() && !now().Before(r.deadline) {
			run.Outcome = schedule.Abandoned
		}
		runs = append(runs, run)
	}
	return runs, ctx.Err()
}

// Prune implements [schedule.Driver].
func (s *Jobs) Prune(ctx context.Context, age time.Duration, keep, limit int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, oldest := 0, now().Add(-age)
	for job, runs := range s.runs {
		old := min(limit-n, max(len(runs)-keep, 0))
		if i := slices.IndexFunc(runs[:old], func(r *jobRun) bool { return !r.Slot.Before(oldest) }); i >= 0 {
			old = i
		}
		s.runs[job] = slices.Delete(runs, 0, old)
		n += old
	}
	return n, ctx.Err()
}
