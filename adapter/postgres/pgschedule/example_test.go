package pgschedule_test

import (
	"context"
	"fmt"
	"time"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pglock"
	"caskeleton.dev/adapter/postgres/pgschedule"
	"caskeleton.dev/internal/testkit/stage"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
)

func ExampleNew() {
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
	locker, err := lock.New(locks, nil)
	if err != nil {
		tb.Fatal(err)
	}

	running, stop := context.WithCancel(ctx)
	expire := schedule.Job{Name: "orders.expire", When: schedule.Cron("0 * * * *"), AtMost: time.Minute, Run: func(context.Context) error {
		fmt.Println("expiring orders")
		stop() // in a service: when it is told to end
		return nil
	}}
	s, err := schedule.New(pgschedule.New(db), locker, []schedule.Job{expire}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	fmt.Println(s.Run(running)) // the hour's slot is taken at once: nobody has run it yet

	runs, err := s.History(ctx, "orders.expire", 1)
	for _, r := range runs {
		fmt.Println(r.Job, r.Outcome, r.Slot.UTC().Minute())
	}
	fmt.Println(err)
	// Output:
	// expiring orders
	// <nil>
	// orders.expire succeeded 0
	// <nil>
}
