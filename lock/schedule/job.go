package schedule

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Job is something to do now and then.
type Job struct {
	Name   string        // 1 to 100 lower-case letters, digits, '.', '_' and '-', such as "orders.expire"; no other job that uses the store has it
	When   Timetable     // [Every] or [Cron], mostly
	AtMost time.Duration // how long one run may take; above 0. After a crash in a run, nobody else runs the job for as long
	// AtLeast keeps the job's lock for so long after a run began that ended sooner: a slot that comes before then is skipped. 0 keeps it no longer than
	// the run.
	AtLeast time.Duration
	// Run does the job. Its context ends AtMost after it began, when the job is told to stop, and when its lock is lost. The lock then goes to whoever
	// runs the next slot, so a job that does not heed its context may run beside its successor. It is no transaction's context.
	Run func(ctx context.Context) error
}

var jobName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}$`)

// validate returns everything that is wrong with j.
func (j Job) validate() error {
	var errs []error
	refuse := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("schedule: job %q: "+format, append([]any{j.Name}, args...)...))
	}
	if !jobName.MatchString(j.Name) {
		refuse("Name must have 1 to 100 lower-case letters, digits, '.', '_' and '-'; use one like orders.expire")
	}
	if j.When == nil {
		refuse("When is nil; use Every or Cron")
	} else if err := j.When.Validate(); err != nil {
		refuse("When: %w", err)
	}
	if j.AtMost <= 0 {
		refuse("AtMost is %v; say how long one run may take, as 5 * time.Minute", j.AtMost)
	}
	if j.AtLeast < 0 || j.AtLeast > max(j.AtMost, 0) {
		refuse("AtLeast is %v; use 0 to AtMost, %v", j.AtLeast, j.AtMost)
	}
	if j.Run == nil {
		refuse("Run is nil; give it a function")
	}
	return errors.Join(errs...)
}
