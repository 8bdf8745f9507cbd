package intlock_test

import (
	"context"
	"fmt"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/intlock"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/internal/testkit/stage"
	"caskeleton.dev/lock"
)

func ExampleNew() {
	tb, end := stage.New()
	defer end()
	ctx, dsn := tb.Context(), pgtest.DSN(tb)
	db, err := postgres.Open(ctx, postgres.Config{DSN: dsn}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close(context.WithoutCancel(ctx)) })

	locks, err := intlock.New(db, nil)
	if err != nil {
		tb.Fatal(err)
	}
	fmt.Println(locks.Check(ctx)) // at start

	if _, err := pgtest.Connect(tb, dsn).Exec(ctx, "set search_path = public; "+layout70); err != nil { // which the Java side does
		tb.Fatal(err)
	}
	fmt.Println(locks.Check(ctx))
	locker, err := lock.New(locks, &lock.Options{Region: "billing"}) // as the region of the JdbcLockRegistry's DefaultLockRepository
	if err != nil {
		tb.Fatal(err)
	}
	fmt.Println(locker.Do(ctx, "invoices/2026-07", nil, func(context.Context) error {
		fmt.Println("closing the month, and no Java service beside")
		return nil
	}))
	// Output:
	// intlock: there is no table "public"."int_lock"; create it with schema-postgresql.sql of Spring Integration 7.0, or correct Options.Table
	// <nil>
	// closing the month, and no Java service beside
	// <nil>
}

func ExampleOptions() {
	_, err := intlock.New(&postgres.DB{}, &intlock.Options{Table: "int_lock"})
	fmt.Println(err)
	// Output: intlock: Options.Table is "int_lock"; write schema.table, as in public.int_lock, each part of at most 63 bytes
}
