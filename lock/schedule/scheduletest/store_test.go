package scheduletest_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	"caskeleton.dev/lock/schedule"
)

// store is a driver: the smallest that keeps the promises, but for one bug at a time.
type store struct {
	bug  string
	mu   sync.Mutex
	rows []row
}

type row struct {
	schedule.Run
	deadline time.Time
}

func (*store) Now(context.Context) (time.Time, error) { return time.Now(), nil }

// at is the clock that a buggy driver gets wrong.
func (s *store) at(bug string) time.Time {
	if s.bug == bug {
		return time.Now().Add(time.Minute)
	}
	return time.Now()
}

// find is called with mu held.
func (s *store) find(c schedule.Claim) *row {
	for i := range s.rows {
		r := &s.rows[i]
		same, sameJob := r.Slot.Equal(c.Slot), r.Job == c.Job
		if s.bug == "takes slots by the second" {
			same = r.Slot.Truncate(time.Second).Equal(c.Slot.Truncate(time.Second))
		}
		if same && (sameJob || s.bug == "takes a slot for all jobs") {
			return r
		}
	}
	return nil
}

func (s *store) Begin(_ context.Context, c schedule.Claim, atMost time.Duration) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(c)
	if s.bug == "looks before it leaps" {
		s.mu.Unlock()
		runtime.Gosched()
		s.mu.Lock()
	}
	if r != nil {
		late := r.FinishedAt.IsZero() && !time.Now().Before(r.deadline)
		switch s.bug {
		case "gives a slot to all":
			return true, nil
		case "gives no slot twice to its owner":
			return false, nil
		case "gives an ended slot again":
			return r.Instance == c.Instance, nil
		case "gives an abandoned slot again":
			return r.Instance == c.Instance || late, nil
		}
		return r.Instance == c.Instance && r.FinishedAt.IsZero(), nil
	}
	if s.bug == "lets a run last for ever" {
		atMost = time.Hour
	}
	if s.bug == "calls every run abandoned" {
		atMost = 0
	}
	run := schedule.Run{Claim: c, StartedAt: s.at("starts by a clock of its own"), Outcome: schedule.Running}
	if s.bug == "names the wrong instance" && len(s.rows) > 0 {
		run.Instance = s.rows[0].Instance
	}
	s.rows = append(s.rows, row{run, time.Now().Add(atMost)})
	return true, nil
}

func (s *store) Finish(_ context.Context, c schedule.Claim, o schedule.Outcome, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(c)
	if r == nil || r.Instance != c.Instance && s.bug != "ends a run of anybody" || !r.FinishedAt.IsZero() && s.bug != "ends a run again" {
		return nil
	}
	r.FinishedAt, r.Outcome, r.Reason = s.at("ends by a clock of its own"), o, reason
	switch s.bug {
	case "forgets the reason":
		r.Reason = ""
	case "calls every end a success":
		r.Outcome = schedule.Succeeded
	}
	return nil
}

func (s *store) History(_ context.Context, job string, limit int) ([]schedule.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var runs []schedule.Run
	for _, r := range s.rows {
		if r.Job != job && s.bug != "lists the runs of all" {
			continue
		}
		if r.FinishedAt.IsZero() && !time.Now().Before(r.deadline) {
			r.Outcome = schedule.Abandoned
		}
		runs = append(runs, r.Run)
	}
	slices.SortFunc(runs, func(a, b schedule.Run) int { return b.Slot.Compare(a.Slot) })
	if s.bug == "lists the oldest first" {
		slices.Reverse(runs)
	}
	if s.bug != "lists more than the limit" {
		runs = runs[:min(len(runs), limit)]
	}
	return runs, nil
}

func (s *store) Prune(_ context.Context, age time.Duration, keep, limit int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.rows, func(a, b row) int { return b.Slot.Compare(a.Slot) })
	n, oldest, seen := 0, time.Now().Add(-age), map[string]int{}
	s.rows = slices.DeleteFunc(s.rows, func(r row) bool {
		seen[r.Job]++
		young, last, full := !r.Slot.Before(oldest), seen[r.Job] <= keep, n == limit
		if young && s.bug != "prunes the young" || last && s.bug != "prunes the last" || full && s.bug != "prunes without a limit" || s.bug == "prunes nothing" {
			return false
		}
		n++
		return true
	})
	return n, nil
}
