package schedule_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is what instances share.
type store struct {
	jobs  schedule.Driver
	locks lock.Driver
}

func newStore() store { return store{memory.NewJobs(), memory.NewLocks(nil)} }

// instance is one scheduler at work.
type instance struct {
	*schedule.Scheduler
	stop context.CancelFunc
	end  chan error
	log  *bytes.Buffer // read once it has stopped
}

// start runs an instance with a locker of its own, as a process has it.
func (s store) start(t *testing.T, o schedule.Options, jobs ...schedule.Job) *instance {
	t.Helper()
	in := &instance{end: make(chan error, 1), log: &bytes.Buffer{}}
	o.Logger = slog.New(slog.NewTextHandler(in.log, nil))
	locker, err := lock.New(s.locks, &lock.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	in.Scheduler, err = schedule.New(s.jobs, locker, jobs, &o)
	require.NoError(t, err)
	var ctx context.Context
	ctx, in.stop = context.WithCancel(t.Context())
	go func() { in.end <- in.Run(ctx) }()
	return in
}

// stopped stops an instance and returns what Run did.
func (in *instance) stopped() error {
	in.stop()
	return <-in.end
}

// told is a job's history, the oldest slot first, as "minutes since the start: outcome reason".
func (s store) told(t *testing.T, job string, since time.Time) []string {
	t.Helper()
	runs, err := s.jobs.History(t.Context(), job, 1000)
	require.NoError(t, err)
	told := make([]string, len(runs))
	for i, r := range runs {
		told[len(runs)-1-i] = strings.TrimSpace(fmt.Sprintf("%v: %s %s", r.Slot.Sub(since).Minutes(), r.Outcome, r.Reason))
	}
	return told
}

// after lets the bubble's clock go on.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func job(run func(context.Context) error) schedule.Job {
	return schedule.Job{Name: "job", When: schedule.Every(time.Minute), AtMost: 10 * time.Minute, Run: run}
}

func TestEachSlotRunsOnceWhateverTheInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStore(), time.Now()
		var mu sync.Mutex
		ran := map[float64]int{}
		var on, most int
		var all []*instance
		for range 3 {
			all = append(all, s.start(t, schedule.Options{}, job(func(ctx context.Context) error {
				mu.Lock()
				ran[time.Since(began).Truncate(time.Minute).Minutes()]++
				on++
				most = max(most, on)
				mu.Unlock()
				<-time.After(20 * time.Second)
				mu.Lock()
				on--
				mu.Unlock()
				return ctx.Err()
			})))
		}
		after(10*time.Hour + 30*time.Second)
		for _, in := range all {
			require.NoError(t, in.stopped())
		}
		require.Len(t, ran, 601)
		for minute := range 601 {
			require.Equal(t, 1, ran[float64(minute)], "slot %d", minute)
		}
		require.Equal(t, 1, most)
		runs, err := s.jobs.History(t.Context(), "job", 1000)
		require.NoError(t, err)
		require.Len(t, runs, 601)
		for _, r := range runs {
			require.Equal(t, schedule.Succeeded, r.Outcome)
			require.Equal(t, 20*time.Second, r.FinishedAt.Sub(r.StartedAt))
			require.Equal(t, r.Slot, r.StartedAt.Truncate(time.Minute))
		}
	})
}

func TestASlotIsSkippedWhileTheRunBeforeIsOn(t *testing.T) {
	for _, instances := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			s, began := newStore(), time.Now()
			var all []*instance
			for range instances {
				all = append(all, s.start(t, schedule.Options{DrainTimeout: time.Minute}, job(func(context.Context) error {
					<-time.After(150 * time.Second)
					return nil
				})))
			}
			after(320 * time.Second)
			require.Equal(t, []string{"0: succeeded", "1: skipped", "2: skipped", "3: running", "4: skipped", "5: skipped"}, s.told(t, "job", began))
			for _, in := range all {
				require.NoError(t, in.stopped())
			}
		})
	}
}

func TestAtLeastKeepsTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStore(), time.Now()
		quick := job(func(context.Context) error { return nil })
		quick.AtLeast = 90 * time.Second
		first, second := s.start(t, schedule.Options{}, quick), s.start(t, schedule.Options{}, quick)
		after(100 * time.Second)
		require.NoError(t, first.stopped())
		after(100 * time.Second)
		require.NoError(t, second.stopped())
		third := s.start(t, schedule.Options{}, quick)
		after(50 * time.Second)
		require.NoError(t, third.stopped())
		require.Equal(t, []string{"0: succeeded", "1: skipped", "2: succeeded", "3: skipped", "4: succeeded"}, s.told(t, "job", began))
	})
}

// TestAnOverrunLosesTheLock: a job that does not heed its context runs beside its successor, and not in one instance.
func TestAnOverrunLosesTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStore(), time.Now()
		var ended atomic.Int64 // seconds after the start at which the context ended
		causes := make(chan error, 9)
		stubborn := job(func(ctx context.Context) error {
			<-ctx.Done()
			ended.Store(int64(time.Since(began).Seconds()))
			causes <- context.Cause(ctx)
			<-time.After(5 * time.Minute)
			return nil
		})
		stubborn.AtMost = 100 * time.Second
		first := s.start(t, schedule.Options{Instance: "first"}, stubborn)
		after(70 * time.Second)
		require.Equal(t, []string{"0: running", "1: skipped"}, s.told(t, "job", began))
		require.Zero(t, ended.Load())
		after(40 * time.Second)
		require.LessOrEqual(t, ended.Load(), int64(100))
		require.GreaterOrEqual(t, ended.Load(), int64(95))
		require.ErrorIs(t, <-causes, lock.ErrLeaseExpired)
		require.Equal(t, []string{"0: abandoned", "1: skipped"}, s.told(t, "job", began))
		after(20 * time.Second)
		require.Equal(t, []string{"0: abandoned", "1: skipped"}, s.told(t, "job", began), "its own instance does not run it twice at a time")

		quick := job(func(context.Context) error { return nil })
		second := s.start(t, schedule.Options{Instance: "second"}, quick)
		after(time.Minute)
		require.Equal(t, []string{"0: abandoned", "1: skipped", "2: succeeded", "3: succeeded"}, s.told(t, "job", began), "another does")
		require.NoError(t, second.stopped())
		after(4 * time.Minute)
		require.Equal(t, "0: overran", s.told(t, "job", began)[0])
		require.Error(t, first.stopped(), "it runs again, and is stubborn again")
		after(5 * time.Minute) // let the goroutine that was left behind end
		require.Contains(t, first.log.String(), "has not returned after AtMost")
	})
}

func TestAFailingJobIsToldAndStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const canary = "canary7"
		s, began := newStore(), time.Now()
		bad := []func(context.Context) error{
			func(context.Context) error {
				return fault.New(fault.DBLockTimeout, "orders.Expire", errors.New(canary))
			},
			func(context.Context) error { panic(canary) },
			func(context.Context) error { runtime.Goexit(); return nil },
			func(context.Context) error { return fmt.Errorf("of %s", canary) },
			func(context.Context) error { return nil },
		}
		n := 0
		failing, good := job(func(ctx context.Context) error { n++; return bad[n-1](ctx) }), job(func(context.Context) error { return nil })
		good.Name = "good"
		in := s.start(t, schedule.Options{}, failing, good)
		after(250 * time.Second)
		require.NoError(t, in.stopped())
		require.Equal(t, []string{
			"0: failed orders.Expire: DB_LOCK_TIMEOUT", "1: failed panic of type string", "2: failed the job ended its goroutine",
			"3: failed *fmt.wrapError", "4: succeeded",
		}, replaceAll(s.told(t, "job", began), "*errors.errorString", "*fmt.wrapError"))
		require.Equal(t, []string{"0: succeeded", "1: succeeded", "2: succeeded", "3: succeeded", "4: succeeded"}, s.told(t, "good", began))
		require.NotContains(t, in.log.String(), canary)
		require.Contains(t, in.log.String(), "scheduler_test.go", "the stack of the panic")
	})
}

func replaceAll(all []string, from, to string) []string {
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], from, to)
	}
	return all
}

func TestOfTheMissedSlotsTheLatestRunsUnlessItIsTooOld(t *testing.T) {
	for name, c := range map[string]struct {
		when schedule.Timetable
		late time.Duration // after midnight, when the second start is
		want []string
	}{
		"the latest of many": {schedule.Every(time.Minute), 3*time.Hour + 10*time.Second, []string{"0: succeeded", "180: succeeded"}},
		"young enough":       {schedule.Cron("0 1 * * *"), 2 * time.Hour, []string{"-1380: succeeded", "60: succeeded"}},
		"too old":            {schedule.Cron("0 1 * * *"), 2*time.Hour + time.Microsecond, []string{"-1380: succeeded"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, began := newStore(), time.Now()
				j := job(func(context.Context) error { return nil })
				j.When = c.when
				after(0)
				first := s.start(t, schedule.Options{CatchUp: 24 * time.Hour}, j)
				after(time.Second)
				require.NoError(t, first.stopped())
				after(c.late - time.Since(began))
				for range 2 { // the second start finds it done
					second := s.start(t, schedule.Options{CatchUp: time.Hour}, j)
					after(time.Second)
					require.NoError(t, second.stopped())
				}
				require.Equal(t, c.want, s.told(t, "job", began))
			})
		})
	}
}

func TestToldToStopItEndsWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStore(), time.Now()
		heeding, done, stubborn := job(func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}), job(func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}), job(func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(time.Minute)
			return ctx.Err()
		})
		done.Name, stubborn.Name = "done", "stubborn"
		in := s.start(t, schedule.Options{DrainTimeout: 30 * time.Second}, heeding, done)
		after(time.Second)
		at := time.Now()
		require.NoError(t, in.stopped())
		require.Equal(t, at, time.Now(), "nothing to wait for")
		require.Equal(t, []string{"0: stopped context canceled"}, s.told(t, "job", began))
		require.Equal(t, []string{"0: succeeded"}, s.told(t, "done", began))
		next := s.start(t, schedule.Options{}, job(func(context.Context) error { return nil }))
		after(time.Minute)
		require.NoError(t, next.stopped())
		require.Equal(t, "1: succeeded", s.told(t, "job", began)[1], "the lock was given back")

		in = s.start(t, schedule.Options{DrainTimeout: 30 * time.Second}, stubborn, done)
		after(time.Second)
		at = time.Now()
		require.EqualError(t, in.stopped(), "schedule: jobs have not returned 30s after their contexts ended: stubborn")
		require.Equal(t, 30*time.Second, time.Since(at))
		after(time.Minute)
		require.Equal(t, "1: stopped context canceled", s.told(t, "stubborn", began)[0])
	})
}

func TestOneRunAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newStore().start(t, schedule.Options{})
		synctest.Wait()
		require.ErrorContains(t, in.Run(t.Context()), "runs already")
		require.NoError(t, in.stopped())
	})
}
