package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"caskeleton.dev/lock"
)

const waiters = 200

// counted counts what a driver is asked; each is a statement.
type counted struct {
	lock.Driver
	lock.Listener
	asked *atomic.Int64
}

func (c counted) Acquire(ctx context.Context, k lock.Key, token lock.Token, lease time.Duration, waiting bool) (lock.Holder, error) {
	c.asked.Add(1)
	return c.Driver.Acquire(ctx, k, token, lease, waiting)
}

func (c counted) Look(ctx context.Context, k lock.Key) (lock.Holder, error) {
	c.asked.Add(1)
	return c.Driver.Look(ctx, k)
}

func (c counted) Release(ctx context.Context, k lock.Key, token lock.Token) (lock.Freed, error) {
	c.asked.Add(1)
	return c.Driver.Release(ctx, k, token)
}

// contention returns how many statements a hand-over costs while so many wait for one key, in two nodes.
func (ls *locks) contention(ctx context.Context) (float64, error) {
	running, stop := context.WithCancel(ctx)
	var listening errgroup.Group
	defer func() { stop(); _ = listening.Wait() }()
	var asked atomic.Int64
	var lockers []*lock.Locker
	for _, d := range ls.drivers {
		l, err := lock.New(counted{d, d, &asked}, &lock.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return 0, err
		}
		listening.Go(func() error { return l.Run(running) })
		lockers = append(lockers, l)
	}
	var g errgroup.Group
	for i := range waiters {
		g.Go(func() error {
			return lockers[i%len(lockers)].Do(ctx, "contended", &lock.AcquireOptions{Wait: time.Minute, Lease: time.Minute}, func(ctx context.Context) error {
				return pause(ctx, time.Millisecond)
			})
		})
	}
	err := g.Wait()
	return float64(asked.Load()) / waiters, err
}
