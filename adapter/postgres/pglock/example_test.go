package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pglock"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/testkit/stage"
	"caskeleton.dev/lock"
)

// Two instances of a service, each with its pool and its locker.
func ExampleNew() {
	tb, end := stage.New()
	defer end()
	ctx, dsn := tb.Context(), migrationstest.DSN(tb, migrations.Lock()) // in a service: migrations.New(dsn, ...) and its Up
	instance := func() *lock.Locker {
		db, err := postgres.Open(ctx, postgres.Config{DSN: dsn}, nil)
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = db.Close(context.WithoutCancel(ctx)) })
		locks, err := pglock.New(db, nil)
		if err != nil {
			tb.Fatal(err)
		}
		locker, err := lock.New(locks, &lock.Options{Region: "billing"}) // and, in a goroutine: locker.Run(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		return locker
	}
	one, other := instance(), instance()

	err := one.Do(ctx, "invoices/2026-07", nil, func(ctx context.Context) error {
		_, err := other.Acquire(ctx, "invoices/2026-07", &lock.AcquireOptions{Wait: 10 * time.Millisecond})
		fmt.Println("the other:", fault.CodeOf(err), errors.Is(err, fault.LockAcquisitionTimeout))
		return nil
	})
	fmt.Println("the one:", err)
	// Output:
	// the other: LOCK_ACQUISITION_TIMEOUT true
	// the one: <nil>
}

// What crashed holders leave is deleted now and then.
func ExampleLocks_Reap() {
	tb, end := stage.New()
	defer end()
	ctx := tb.Context()
	db, err := postgres.Open(ctx, postgres.Config{DSN: migrationstest.DSN(tb, migrations.Lock())}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close(context.WithoutCancel(ctx)) })
	locks, err := pglock.New(db, nil)
	if err != nil {
		tb.Fatal(err)
	}
	crash := func(lease time.Duration) error { // taken, and never given back
		_, err := locks.Acquire(ctx, lock.Key{Region: "billing", Name: lease.String()}, lock.Token{1}, lease, false)
		return err
	}
	fmt.Println(crash(time.Nanosecond), crash(time.Minute))
	fmt.Println(locks.Reap(ctx, 0, 1000)) // in a service: an hour, from a job of lock/schedule
	// Output:
	// <nil> <nil>
	// 1 <nil>
}
