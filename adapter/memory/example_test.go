package memory_test

import (
	"context"
	"fmt"
	"time"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
)

// A test that wants a lease to pass moves the clock.
func ExampleNewLocks() {
	ctx, now := context.Background(), time.Now()
	locks := memory.NewLocks(&memory.LocksOptions{Now: func() time.Time { return now }})
	locker, err := lock.New(locks, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	lease, err := locker.Acquire(ctx, "report", &lock.AcquireOptions{Lease: time.Minute})
	fmt.Println(lease.Key(), err)

	now = now.Add(time.Minute)
	_, err = locker.Acquire(ctx, "report", &lock.AcquireOptions{Wait: 0})
	fmt.Println("taken over:", err == nil)
	fmt.Println(lease.Release(ctx))
	// Output:
	// report <nil>
	// taken over: true
	// lock.Release: LOCK_LEASE_LOST
}

func ExampleNewJobs() {
	locker, err := lock.New(memory.NewLocks(nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	jobs := []schedule.Job{{Name: "tidy", When: schedule.Every(time.Hour), AtMost: time.Minute, Run: func(context.Context) error {
		fmt.Println("tidying up")
		stop()
		return nil
	}}}
	s, err := schedule.New(memory.NewJobs(), locker, jobs, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Run(ctx))
	// Output:
	// tidying up
	// <nil>
}
