package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

func ExampleLocker_Do() {
	locker, _ := lock.New(memory.NewLocks(nil), nil) // with several instances: the driver of pglock or redislock

	err := locker.Do(context.Background(), "invoices/2026-07", nil, func(context.Context) error {
		fmt.Println("closing the month, alone")
		return nil
	})
	fmt.Println(err)
	// Output:
	// closing the month, alone
	// <nil>
}

func ExampleLocker_Acquire() {
	ctx := context.Background()
	locker, _ := lock.New(memory.NewLocks(nil), nil)

	lease, err := locker.Acquire(ctx, "report", &lock.AcquireOptions{Wait: 0, Lease: time.Minute})
	fmt.Println(lease.Key(), err)

	_, err = locker.Acquire(ctx, "report", &lock.AcquireOptions{Wait: 0}) // whoever else wants it
	fmt.Println(errors.Is(err, fault.LockAcquisitionTimeout))

	fmt.Println(lease.Release(ctx))
	// Output:
	// report <nil>
	// true
	// <nil>
}

func ExampleLease_KeepAlive() {
	locker, _ := lock.New(memory.NewLocks(nil), nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // no watchdog without a bound
	defer cancel()

	lease, err := locker.Acquire(ctx, "reindex", &lock.AcquireOptions{Lease: 30 * time.Second})
	if err != nil {
		return
	}
	kept := make(chan error, 1)
	go func() { kept <- lease.KeepAlive(ctx) }()

	work, done := lease.Context(ctx) // ends where the lease is lost all the same
	fmt.Println("reindexing, for as long as it takes:", work.Err())
	done()

	fmt.Println(lease.Release(ctx))
	fmt.Println(<-kept)
	// Output:
	// reindexing, for as long as it takes: <nil>
	// <nil>
	// <nil>
}
