package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"caskeleton.dev/lock"
)

// unlock gives back what was locked.
type unlock func(ctx context.Context) error

// mutex is a way to lock, seen from two nodes that share nothing but the store.
type mutex struct {
	name string
	lock func(ctx context.Context, node int, key string) (unlock, error)
	stop func() // nil where there is nothing to stop
}

// cycles locks and unlocks n times, in so many goroutines, each over keys of its own.
func (m mutex) cycles(goroutines int) func(ctx context.Context, n int) error {
	return func(ctx context.Context, n int) error {
		var g errgroup.Group
		for w := range goroutines {
			g.Go(func() error {
				key := "cycle/" + strconv.Itoa(w)
				return times(n/goroutines, func(int) error {
					unlock, err := m.lock(ctx, 0, key)
					if err != nil {
						return err
					}
					return unlock(ctx)
				})
			})
		}
		return g.Wait()
	}
}

// handOvers returns how long it takes, sorted, from the call that unlocks in one node to the return of the call that waited in the other.
func (m mutex) handOvers(ctx context.Context, rounds int) ([]time.Duration, error) {
	all := make([]time.Duration, 0, rounds)
	for i := range rounds {
		key := "hand-over/" + strconv.Itoa(i)
		release, err := m.lock(ctx, 0, key)
		if err != nil {
			return nil, err
		}
		var got time.Time
		var g errgroup.Group
		g.Go(func() error {
			release, err := m.lock(ctx, 1, key)
			if err != nil {
				return err
			}
			got = time.Now()
			return release(ctx)
		})
		// Long enough for the other to wait, and at any moment between two polls of it.
		<-time.After(50*time.Millisecond + rand.N(200*time.Millisecond)) //nolint:gosec // no secret
		began := time.Now()
		if err := release(ctx); err != nil {
			return nil, err
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		all = append(all, got.Sub(began))
	}
	slices.Sort(all)
	return all, nil
}

// kitMutex locks by the port over two drivers. With hints, each node listens for the other's releases.
func kitMutex(ctx context.Context, name string, drivers [2]lock.Driver, hints bool) (mutex, error) {
	ctx, cancel := context.WithCancel(ctx)
	var running errgroup.Group
	var lockers [2]*lock.Locker
	for i, d := range drivers {
		l, err := lock.New(d, &lock.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			cancel()
			return mutex{}, err
		}
		if hints {
			running.Go(func() error { return l.Run(ctx) })
		}
		lockers[i] = l
	}
	if hints {
		<-time.After(300 * time.Millisecond) // until both listen
	}
	return mutex{
		name: name,
		lock: func(ctx context.Context, node int, key string) (unlock, error) {
			lease, err := lockers[node].Acquire(ctx, key, &lock.AcquireOptions{Wait: 20 * time.Second})
			if err != nil {
				return nil, err
			}
			return lease.Release, nil
		},
		stop: func() { cancel(); _ = running.Wait() },
	}, nil
}
