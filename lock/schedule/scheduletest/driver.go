package scheduletest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/lock/schedule"
)

// DriverHarness makes what [TestDriver] tests.
type DriverHarness struct {
	// New returns a driver on a store that no other check uses: they run in parallel. It cleans up by t.Cleanup.
	New func(t *testing.T) schedule.Driver
}

// TestDriver checks what [schedule.Driver] promises, each promise in a subtest of its name.
func TestDriver(t *testing.T, h DriverHarness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("scheduletest: DriverHarness.New is required: let it return a driver on an empty store")
	}
	suite.Test(t, driverChecks(), h.New)
}

func driverChecks() []suite.Check[schedule.Driver] {
	return []suite.Check[schedule.Driver]{
		{Name: "a slot is taken once", Run: once},
		{Name: "one of many gets a slot", Run: race},
		{Name: "a run ends once, by who began it", Run: ends},
		{Name: "times are the store's", Run: times},
		{Name: "a run without an end is abandoned", Run: abandoned},
		{Name: "the history is the job's, latest slot first", Run: history},
		{Name: "pruning spares the young and the last", Run: pruning},
	}
}

const (
	job  = "orders.expire"
	hour = time.Hour
)

// slot returns the nth slot; they are odd to the microsecond.
func slot(n int) time.Time { return time.UnixMicro(1_700_000_000_123_457 + int64(n)*60_000_000).UTC() }

func claim(n int, instance string) schedule.Claim {
	return schedule.Claim{Job: job, Slot: slot(n), Instance: instance}
}

// begins fails unless taking a slot has that result.
func begins(ctx context.Context, d schedule.Driver, want bool, c schedule.Claim, what string) {
	got, err := d.Begin(ctx, c, hour)
	suite.Must(err, "taking "+what)
	suite.Equal(want, got, "taking "+what)
}

// runs returns a job's history, in UTC.
func runs(ctx context.Context, d schedule.Driver, job string, limit int) []schedule.Run {
	all, err := d.History(ctx, job, limit)
	suite.Must(err, "history")
	for i := range all {
		all[i].Slot = all[i].Slot.UTC()
	}
	return all
}

// only returns the one run of the job.
func only(ctx context.Context, d schedule.Driver) schedule.Run {
	all := runs(ctx, d, job, 10)
	suite.Equal(1, len(all), "runs of a job of which one slot was taken")
	return all[0]
}

func once(ctx context.Context, d schedule.Driver) {
	begins(ctx, d, true, claim(1, "a"), "a new slot")
	begins(ctx, d, false, claim(1, "b"), "a slot of another instance")
	begins(ctx, d, true, claim(1, "a"), "the same slot again, as after an answer that was lost")
	begins(ctx, d, false, claim(1, "b"), "a slot of another instance, again")
	begins(ctx, d, true, claim(2, "b"), "the next slot")
	begins(ctx, d, true, claim(0, "b"), "a slot before")
	near := claim(1, "b")
	near.Slot = near.Slot.Add(time.Microsecond)
	begins(ctx, d, true, near, "a slot a microsecond later")
	begins(ctx, d, true, schedule.Claim{Job: "other", Slot: slot(1), Instance: "b"}, "the slot of another job")
}

func race(ctx context.Context, d schedule.Driver) {
	for n := range 20 {
		var mine atomic.Int32
		var failed atomic.Pointer[error]
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				got, err := d.Begin(ctx, claim(n, fmt.Sprint(i)), hour)
				if err != nil {
					failed.Store(&err)
				}
				if got {
					mine.Add(1)
				}
			})
		}
		all.Wait()
		if err := failed.Load(); err != nil {
			suite.Must(*err, "taking a slot at the same time as others")
		}
		suite.Equal(1, mine.Load(), "instances of eight that got a slot")
	}
}

func ends(ctx context.Context, d schedule.Driver) {
	suite.Must(d.Finish(ctx, claim(1, "a"), schedule.Succeeded, ""), "ending what was never begun")
	suite.Equal(0, len(runs(ctx, d, job, 10)), "runs of a job that never ran")
	begins(ctx, d, true, claim(1, "a"), "a new slot")
	suite.Must(d.Finish(ctx, claim(1, "b"), schedule.Succeeded, ""), "ending what another instance runs")
	r := only(ctx, d)
	suite.Equal(schedule.Running, r.Outcome, "outcome of a run that another instance has ended")
	suite.Equal(true, r.FinishedAt.IsZero(), "no end of such a run")

	reason := strings.Repeat("é", 500)
	suite.Must(d.Finish(ctx, claim(1, "a"), schedule.Failed, reason), "ending a run")
	r = only(ctx, d)
	suite.Equal(schedule.Failed, r.Outcome, "outcome of a run")
	suite.Equal(reason, r.Reason, "reason of a run")
	suite.Equal(false, r.FinishedAt.IsZero(), "an end of a run that ended")
	suite.Must(d.Finish(ctx, claim(1, "a"), schedule.Succeeded, ""), "ending a run again")
	suite.Equal(r, only(ctx, d), "a run that was ended twice")
	begins(ctx, d, false, claim(1, "a"), "a slot whose run has ended, by who ran it")
	begins(ctx, d, false, claim(1, "b"), "a slot whose run has ended")
	suite.Equal(r, only(ctx, d), "a run whose slot was asked for again")
	for i, o := range []schedule.Outcome{schedule.Succeeded, schedule.Overran, schedule.Stopped, schedule.Skipped} {
		begins(ctx, d, true, claim(10+i, "a"), "a new slot")
		suite.Must(d.Finish(ctx, claim(10+i, "a"), o, ""), "ending a run")
		suite.Equal(o, runs(ctx, d, job, 1)[0].Outcome, "outcome of a run")
	}
}

func times(ctx context.Context, d schedule.Driver) {
	read := func() time.Time {
		at, err := d.Now(ctx)
		suite.Must(err, "now")
		return at
	}
	before := read()
	begins(ctx, d, true, claim(1, "a"), "a new slot")
	begun := read()
	suite.Must(d.Finish(ctx, claim(1, "a"), schedule.Succeeded, ""), "ending a run")
	after := read()
	r := only(ctx, d)
	for _, p := range []struct {
		what            string
		least, at, most time.Time
	}{{"start", before, r.StartedAt, begun}, {"end", begun, r.FinishedAt, after}} {
		if p.at.Before(p.least) || p.at.After(p.most) {
			suite.Fail("the %s of a run is %v, and the store's clock was between %v and %v", p.what, p.at, p.least, p.most)
		}
	}
}

func abandoned(ctx context.Context, d schedule.Driver) {
	mine, err := d.Begin(ctx, claim(1, "a"), time.Millisecond)
	suite.Must(err, "taking a slot")
	suite.Equal(true, mine, "taking a slot")
	begun, err := d.Now(ctx) // the deadline is a millisecond later at most
	suite.Must(err, "now")
	for now := begun; now.Sub(begun) <= time.Millisecond; {
		now, err = d.Now(ctx)
		suite.Must(err, "now")
	}
	r := only(ctx, d)
	suite.Equal(schedule.Abandoned, r.Outcome, "outcome of a run that did not end in time")
	suite.Equal(true, r.FinishedAt.IsZero(), "no end of such a run")
	begins(ctx, d, false, claim(1, "b"), "a slot whose run was abandoned")
	suite.Must(d.Finish(ctx, claim(1, "a"), schedule.Overran, "late"), "ending a run late")
	suite.Equal(schedule.Overran, only(ctx, d).Outcome, "outcome of a run that ended late")
	begins(ctx, d, true, claim(2, "a"), "the next slot")
	suite.Equal(schedule.Running, runs(ctx, d, job, 1)[0].Outcome, "outcome of a run that has an hour left")
}

func history(ctx context.Context, d schedule.Driver) {
	suite.Equal(0, len(runs(ctx, d, job, 10)), "runs of a job that never ran")
	for _, n := range []int{3, 1, 4, 2} {
		begins(ctx, d, true, claim(n, fmt.Sprint("instance ", n)), "a new slot")
	}
	begins(ctx, d, true, schedule.Claim{Job: "other", Slot: slot(9), Instance: "b"}, "the slot of another job")
	all := runs(ctx, d, job, 10)
	suite.Equal(4, len(all), "runs of the job")
	for i, r := range all {
		suite.Equal(claim(4-i, fmt.Sprint("instance ", 4-i)), r.Claim, fmt.Sprintf("run %d of the history", i))
	}
	suite.Equal(all[:2], runs(ctx, d, job, 2), "the two latest runs")
}

func pruning(ctx context.Context, d schedule.Driver) {
	now, err := d.Now(ctx)
	suite.Must(err, "now")
	day := 24 * time.Hour
	for _, name := range []string{job, "other"} {
		for n := range 8 {
			begins(ctx, d, true, schedule.Claim{Job: name, Slot: now.Add(-time.Duration(n) * day).Truncate(time.Microsecond), Instance: "a"}, "a new slot")
		}
	}
	prune := func(age time.Duration, keep, limit, want int, what string) {
		n, err := d.Prune(ctx, age, keep, limit)
		suite.Must(err, "pruning "+what)
		suite.Equal(want, n, "runs pruned: "+what)
	}
	prune(day/2, 8, 100, 0, "there are no more than are kept")
	prune(30*day, 1, 100, 0, "none is that old")
	latest := runs(ctx, d, job, 4)
	prune(3*day+day/2, 2, 5, 5, "eight, in batches of five")
	prune(3*day+day/2, 2, 5, 3, "what the batch before left")
	prune(3*day+day/2, 2, 5, 0, "nothing is left")
	suite.Equal(latest, runs(ctx, d, job, 10), "runs that are not as old")
	suite.Equal(4, len(runs(ctx, d, "other", 10)), "runs of the other job that are not as old")
	prune(day/2, 3, 100, 2, "one of each is not among the last three")
	suite.Equal(latest[:3], runs(ctx, d, job, 10), "the last three runs")
}
