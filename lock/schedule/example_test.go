package schedule_test

import (
	"context"
	"fmt"
	"time"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
)

func ExampleScheduler_Run() {
	locker, err := lock.New(memory.NewLocks(nil), nil) // with several instances: the driver of pglock or redislock
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := schedule.New(memory.NewJobs(), locker, []schedule.Job{{ // with several instances: pgschedule.New(db)
		Name: "orders.expire", When: schedule.Every(time.Hour), AtMost: 5 * time.Minute,
		Run: func(context.Context) error {
			fmt.Println("expiring orders")
			stop() // in a service, ctx ends when it is told to stop
			return nil
		},
	}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Jobs())
	fmt.Println(s.Run(ctx))
	// Output:
	// [orders.expire schedule.prune]
	// expiring orders
	// <nil>
}

// All that is wrong with the jobs is told at once.
func ExampleNew() {
	locker, err := lock.New(memory.NewLocks(nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = schedule.New(memory.NewJobs(), locker, []schedule.Job{
		{Name: "Orders", When: schedule.Cron("0 25 * * *"), AtMost: time.Minute, Run: func(context.Context) error { return nil }},
	}, nil)
	fmt.Println(err)
	// Output:
	// schedule: job "Orders": Name must have 1 to 100 lower-case letters, digits, '.', '_' and '-'; use one like orders.expire
	// schedule: job "Orders": When: Cron("0 25 * * *"): hour "25" has "25" in it; write a number from 0 to 23
}

func ExampleEvery() {
	noon := time.Date(2026, 7, 1, 12, 0, 30, 0, time.UTC)
	quarter := schedule.Every(15 * time.Minute)
	fmt.Println(quarter.Last(noon).Format(time.TimeOnly), quarter.Next(noon).Format(time.TimeOnly))
	// Output: 12:00:00 12:15:00
}

func ExampleCron() {
	monday := time.Date(2026, 6, 29, 9, 0, 0, 0, time.UTC)
	workdays := schedule.Cron("30 8 * * MON-FRI")
	fmt.Println(workdays.Last(monday).Format(time.DateTime), workdays.Next(monday).Format(time.DateTime))
	// Output: 2026-06-29 08:30:00 2026-06-30 08:30:00
}
