package pgschedule_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/pglock"
	"caskeleton.dev/adapter/postgres/pgschedule"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
)

// TestEachSlotRunsOnceInThreeInstances has three schedulers, each with a pool and a locker of its own, drive fast slots while some runs take longer than
// a slot, and while sessions are cut. One is stopped, and another started, again and again.
func TestEachSlotRunsOnceInThreeInstances(t *testing.T) {
	const step = 20 * time.Millisecond
	dsn := newDSN(t)
	var on, overlaps, runs, cuts atomic.Int64
	job := schedule.Job{Name: "job", When: schedule.Every(step), AtMost: 30 * time.Second, Run: func(ctx context.Context) error {
		if on.Add(1) > 1 {
			overlaps.Add(1)
		}
		defer on.Add(-1)
		runs.Add(1)
		select {
		case <-time.After(rand.N(2 * step)):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	start := func() (stop func()) {
		db := open(t, dsn, "")
		locks, err := pglock.New(db, nil)
		require.NoError(t, err)
		locker, err := lock.New(locks, &lock.Options{Logger: quiet()})
		require.NoError(t, err)
		s, err := schedule.New(pgschedule.New(db), locker, []schedule.Job{job}, &schedule.Options{Logger: quiet()})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		return sync.OnceFunc(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	stops := []func(){start(), start(), start()}
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()

	conn := pgtest.Connect(t, dsn)
	for i := range 9 {
		before := runs.Load()
		require.Eventually(t, func() bool { return runs.Load() >= before+20 }, time.Minute, time.Millisecond)
		if i%3 == 0 {
			var cut int64
			require.NoError(t, conn.QueryRow(t.Context(), `select count(pg_terminate_backend(pid)) from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and random() < 0.5`).Scan(&cut))
			cuts.Add(cut)
			continue
		}
		stops[i%3]()
		stops[i%3] = start()
	}
	for _, stop := range stops {
		stop()
	}
	require.Positive(t, cuts.Load())
	require.Zero(t, overlaps.Load(), "runs beside each other while their leases hold")

	var began, slots, instances, off int64
	require.NoError(t, conn.QueryRow(t.Context(), `select count(*) filter (where outcome is distinct from 'skipped'), count(distinct slot), count(distinct instance),
		count(*) filter (where started_at < slot) from caskeleton.job_run where job = 'job'`).Scan(&began, &slots, &instances, &off))
	require.GreaterOrEqual(t, began, runs.Load(), "a run without a row of its own")
	require.GreaterOrEqual(t, slots, began)
	require.GreaterOrEqual(t, instances, int64(3))
	require.Zero(t, off, "slots that began too early")
}
