package redislock_test

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/redis/rueidis"

	"caskeleton.dev/adapter/redis/redislock"
	"caskeleton.dev/lock"
)

func Example() {
	ctx := context.Background()
	client, err := rueidis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		log.Fatal("REDIS_URL is no URL of a Redis: use redis://user:password@host:6379") // not err: it has the password in it
	}
	d, err := redislock.Open(client, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer d.Close()
	locker, err := lock.New(d, nil)
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = locker.Run(ctx) }() // hears of releases in other processes

	err = locker.Do(ctx, "orders/17", &lock.AcquireOptions{Wait: time.Second, Lease: time.Minute}, func(context.Context) error {
		return nil // work that should not be done twice at the same time
	})
	if err != nil {
		log.Print(err)
	}
}
