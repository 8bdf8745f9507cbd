package schedule_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
)

var errDown = fault.New(fault.DBUnavailable, "postgres.Query", errors.New("down"))

// flaky is a driver whose calls fail while it is down.
type flaky struct {
	schedule.Driver
	down   atomic.Bool   // every call fails
	lost   atomic.Bool   // Begin and Finish work, and say that they failed
	ahead  time.Duration // of the node's clock is the store's
	begins atomic.Int32
}

func (f *flaky) Now(ctx context.Context) (time.Time, error) {
	if f.down.Load() {
		return time.Time{}, errDown
	}
	now, err := f.Driver.Now(ctx)
	return now.Add(f.ahead), err
}

func (f *flaky) Begin(ctx context.Context, c schedule.Claim, atMost time.Duration) (bool, error) {
	f.begins.Add(1)
	if f.down.Load() {
		return false, errDown
	}
	mine, err := f.Driver.Begin(ctx, c, atMost)
	if f.lost.Load() {
		return false, errDown
	}
	return mine, err
}

func (f *flaky) Finish(ctx context.Context, c schedule.Claim, o schedule.Outcome, reason string) error {
	if f.down.Load() {
		return errDown
	}
	return f.Driver.Finish(ctx, c, o, reason)
}

func TestAnOutageDelaysASlotAndIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStore(), time.Now()
		f := &flaky{Driver: s.jobs}
		s.jobs = f
		in := s.start(t, schedule.Options{}, job(func(context.Context) error { return nil }))
		after(30 * time.Second)
		f.down.Store(true)
		after(170 * time.Second) // slots 1, 2 and 3 pass
		f.down.Store(false)
		after(10 * time.Second)
		require.Equal(t, []string{"0: succeeded", "3: succeeded"}, s.told(t, "job", began))
		require.NoError(t, in.stopped())
		require.Equal(t, 1, strings.Count(in.log.String(), "schedule store fails"))
		require.Equal(t, 1, strings.Count(in.log.String(), "schedule store works again"))
	})
}

func TestASlotWhoseAnswerWasLostIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStore(), time.Now()
		f := &flaky{Driver: s.jobs}
		f.lost.Store(true)
		s.jobs = f
		in := s.start(t, schedule.Options{}, job(func(context.Context) error { return nil }))
		after(2500 * time.Millisecond)
		require.Equal(t, []string{"0: running"}, s.told(t, "job", began), "taken, and nobody knows")
		f.lost.Store(false)
		after(time.Second)
		require.Equal(t, []string{"0: succeeded"}, s.told(t, "job", began))
		require.NoError(t, in.stopped())
	})
}

func TestAnEndThatIsNotRecordedLooksAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStore(), time.Now()
		f := &flaky{Driver: s.jobs}
		s.jobs = f
		in := s.start(t, schedule.Options{}, job(func(context.Context) error { f.down.Store(true); return nil }))
		after(time.Second)
		f.down.Store(false)
		require.NoError(t, in.stopped())
		require.Equal(t, []string{"0: running"}, s.told(t, "job", began))
		after(10 * time.Minute)
		require.Equal(t, []string{"0: abandoned"}, s.told(t, "job", began))
		require.Contains(t, in.log.String(), "end not recorded")
	})
}

// noLocks is a driver of locks that is out of order.
type noLocks struct{ lock.Driver }

func (noLocks) Acquire(context.Context, lock.Key, lock.Token, time.Duration, bool) (lock.Holder, error) {
	return lock.Holder{}, errDown
}

func TestALockThatCannotBeAskedForFailsTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStore(), time.Now()
		s.locks = noLocks{s.locks}
		in := s.start(t, schedule.Options{}, job(func(context.Context) error { return errors.New("it ran") }))
		after(time.Second)
		require.NoError(t, in.stopped())
		require.Len(t, s.told(t, "job", began), 1)
		require.Regexp(t, `^0: failed .*DB_UNAVAILABLE$`, s.told(t, "job", began)[0])
	})
}

// slowLocks is a driver of locks that takes its time to give one back.
type slowLocks struct{ lock.Driver }

func (s slowLocks) Release(ctx context.Context, k lock.Key, t lock.Token) (lock.Freed, error) {
	<-time.After(4 * time.Second)
	return s.Driver.Release(ctx, k, t)
}

// TestASlotThatComesWhileTheLockIsGivenBackIsSkipped, and not lost: the run before has returned in time.
func TestASlotThatComesWhileTheLockIsGivenBackIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStore(), time.Now()
		s.locks = slowLocks{s.locks}
		in := s.start(t, schedule.Options{DrainTimeout: time.Second}, job(func(context.Context) error {
			<-time.After(58 * time.Second)
			return nil
		}))
		after(100 * time.Second)
		require.Equal(t, []string{"0: succeeded", "1: skipped"}, s.told(t, "job", began))
		after(79 * time.Second) // to where the third run has returned, and its lock is still being given back
		require.NoError(t, in.stopped(), "nobody is left who has not returned")
		require.NotContains(t, in.log.String(), "has not returned")
		require.Equal(t, []string{"0: succeeded", "1: skipped", "2: succeeded"}, s.told(t, "job", began))
		after(10 * time.Second) // let the release end
	})
}

// TestTheStoresClockDecides: a node whose clock is 20 minutes behind the store's takes the store's slots, when they come there.
func TestTheStoresClockDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		began, ahead := time.Now(), 20*time.Minute+17*time.Second
		s.jobs = &flaky{Driver: s.jobs, ahead: ahead}
		var at []time.Duration
		in := s.start(t, schedule.Options{}, job(func(context.Context) error {
			at = append(at, time.Since(began))
			return nil
		}))
		after(110 * time.Second)
		require.NoError(t, in.stopped())
		require.Equal(t, []string{"20: succeeded", "21: succeeded", "22: succeeded"}, s.told(t, "job", began))
		require.Equal(t, []time.Duration{0, 43 * time.Second, 103 * time.Second}, at)
	})
}

func TestTheStoreIsAskedNoMoreThanNeedBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		f := &flaky{Driver: s.jobs}
		s.jobs = f
		in := s.start(t, schedule.Options{}, job(func(context.Context) error { return nil }))
		after(150 * time.Second)
		require.NoError(t, in.stopped())
		require.Equal(t, int32(3+1), f.begins.Load(), "three slots of job, one of schedule.prune")
	})
}

func TestOldRunsAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newStore(), time.Now()
		in := s.start(t, schedule.Options{Retention: 3 * time.Hour}, job(func(context.Context) error { return nil }))
		after(5*time.Hour + time.Second)
		require.NoError(t, in.stopped())
		told := s.told(t, "job", began)
		require.Len(t, told, 3*60+1)
		require.Equal(t, "120: succeeded", told[0])
		require.Equal(t, "300: succeeded", told[len(told)-1])
		require.Len(t, s.told(t, "schedule.prune", began), 6)
	})
}
