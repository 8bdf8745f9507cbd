package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

const (
	rate    = 1000 // events a second, each in a transaction of its own
	writers = 8
)

// stopwatch notes when events were committed and published, by their numbers.
type stopwatch struct {
	committed, published []time.Time // one goroutine an element
	left                 atomic.Int64
	done                 context.CancelFunc // called when all were published
}

func (w *stopwatch) Publish(_ context.Context, run []outbox.Event) (int, error) {
	for _, e := range run {
		w.published[binary.BigEndian.Uint32(e.Payload)] = time.Now()
	}
	if w.left.Add(-int64(len(run))) == 0 {
		w.done()
	}
	return len(run), nil
}

// latency is the time from the return of COMMIT to the call of the publisher.
type latency struct {
	p50, p99 time.Duration
	rate     float64 // events a second that were in fact committed
}

// latency appends for so many seconds at a steady rate, whether or not the relay keeps up.
func (f *fixture) latency(ctx context.Context, seconds int) (l latency, err error) {
	n := rate * seconds
	running, stop := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+time.Minute)
	defer stop()
	w := &stopwatch{committed: make([]time.Time, n), published: make([]time.Time, n), done: stop}
	w.left.Store(int64(n))
	r, err := outbox.NewRelay(f.driver, w, &outbox.RelayOptions{Bell: f.outbox.Bell()})
	if err != nil {
		return l, err
	}
	var relay sync.WaitGroup
	relay.Go(func() { err = r.Run(running) })
	took, appendErr := f.appendSteadily(ctx, w, n)
	if appendErr != nil {
		stop()
	}
	relay.Wait()
	switch {
	case appendErr != nil:
		return l, appendErr
	case err != nil:
		return l, err
	case w.left.Load() != 0:
		return l, fmt.Errorf("%d of %d events were not published", w.left.Load(), n)
	}
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = w.published[i].Sub(w.committed[i])
	}
	slices.Sort(all)
	return latency{all[n/2], all[n*99/100], float64(n) / took.Seconds()}, nil
}

// appendSteadily commits event i when its time has come, i/rate after the start, or as soon as a writer is free.
func (f *fixture) appendSteadily(ctx context.Context, w *stopwatch, n int) (time.Duration, error) {
	start := time.Now()
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range writers {
		g.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				select {
				case <-time.After(time.Until(start.Add(time.Duration(i) * time.Second / rate))):
				case <-ctx.Done():
					return ctx.Err()
				}
				if err := f.appendOne(ctx, w, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := g.Wait()
	return time.Since(start), err
}

func (f *fixture) appendOne(ctx context.Context, w *stopwatch, i int) error {
	return f.runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
		// Registered before the outbox's own hook, which rings the bell.
		if err := t.AfterCommit(func(context.Context) error { w.committed[i] = time.Now(); return nil }); err != nil {
			return err
		}
		e := placed(i)
		e.Payload = binary.BigEndian.AppendUint32(nil, uint32(i)) //nolint:gosec // a few thousand
		return f.outbox.Append(ctx, t, e)
	})
}
