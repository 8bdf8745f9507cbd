package schedule

import (
	"context"
	"time"
)

const (
	pruneKeep  = 100  // runs of each job
	pruneBatch = 1000 // runs at a time
)

// pruning is the job that deletes old runs.
func (s *Scheduler) pruning() Job {
	return Job{Name: "schedule.prune", When: Every(time.Hour), AtMost: 10 * time.Minute, Run: func(ctx context.Context) error {
		for {
			n, err := s.driver.Prune(ctx, s.opts.Retention, pruneKeep, pruneBatch)
			if err != nil || n < pruneBatch {
				return err
			}
		}
	}}
}
