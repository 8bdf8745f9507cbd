package intlock_test

import (
	"context"
	"fmt"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/intlock"
	"caskeleton.dev/lock"
)

func ExampleNew() {
	start := func(ctx context.Context, db *postgres.DB) (*lock.Locker, error) {
		locks, err := intlock.New(db, &intlock.Options{Table: "billing.int_lock"})
		if err != nil {
			return nil, err
		}
		if err := locks.Check(ctx); err != nil {
			return nil, err
		}
		return lock.New(locks, nil)
	}
	_ = start // it needs a database

	_, err := intlock.New(&postgres.DB{}, &intlock.Options{Table: "int_lock"})
	fmt.Println(err)
	// Output: intlock: Options.Table is "int_lock"; write schema.table, as in public.int_lock, each part of at most 63 bytes
}
