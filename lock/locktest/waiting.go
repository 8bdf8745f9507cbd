package locktest

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/lock"
)

// locker returns one that polls often.
func locker(d lock.Driver) *lock.Locker {
	l, err := lock.New(d, &lock.Options{Poll: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	suite.Must(err, "lock.New")
	return l
}

// listen runs Listen of a driver beside what during does, which begins once it hears.
func (s Store) listen(ctx context.Context, d lock.Listener, during func(heard <-chan lock.Digest)) {
	ctx, cancel := context.WithTimeout(ctx, 3*s.bound())
	defer cancel()
	ready, heard, ended := make(chan struct{}, 1), make(chan lock.Digest, 100), make(chan error, 1)
	go func() {
		ended <- d.Listen(ctx, func() {
			select {
			case ready <- struct{}{}:
			default:
			}
		}, func(k lock.Digest) {
			select {
			case heard <- k:
			default:
			}
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		suite.Fail("listening ended before it began: %v", err)
	case <-time.After(s.bound()):
		suite.Fail("it is never ready to hear releases")
	}
	during(heard)
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			suite.Fail("listening that ended returned no error")
		}
	case <-time.After(s.bound()):
		suite.Fail("listening goes on after its context has ended")
	}
}

func hint(ctx context.Context, s Store) {
	l, ok := s.Other.(lock.Listener)
	if !ok {
		return
	}
	s.listen(ctx, l, func(heard <-chan lock.Digest) {
		quiet, busy := key("nobody waits for it"), key("the one with a waiter")
		for range 2 {
			t := takes(ctx, s.Driver, quiet, long, "a free key")
			refused(ctx, s.Driver, quiet, false, "a held key")
			gives(ctx, lock.Released, s.Driver, quiet, t, "a key that nobody waits for")
			t = takes(ctx, s.Driver, busy, long, "a free key")
			refused(ctx, s.Other, busy, true, "a held key")
			gives(ctx, lock.Released, s.Driver, busy, t, "a key that another waits for")
			select {
			case k := <-heard:
				suite.Equal(busy.Digest(), k, "the key of which the release is announced")
			case <-time.After(s.bound()):
				suite.Fail("the release of a contended key is not announced")
			}
		}
	})
}

func deaf(ctx context.Context, s Store) {
	if l, ok := s.Driver.(lock.Listener); ok {
		s.listen(ctx, l, func(<-chan lock.Digest) {})
	}
}

// cut ends calls before they begin, and the callers of others while they run.
func cut(ctx context.Context, s Store) {
	k := key("orders/17")
	dead, cancel := context.WithCancel(ctx)
	cancel()
	t := token()
	if _, err := s.Driver.Acquire(dead, k, t, long, false); err == nil {
		suite.Fail("acquiring under a context that has ended succeeded")
	}
	if _, err := s.Driver.Release(dead, k, t); err == nil {
		suite.Fail("releasing under a context that has ended succeeded")
	}
	looks(ctx, s.Other, k, false, "a key that was asked for under a context that had ended")
	l := locker(s.Driver)
	for range 30 {
		brief, cancel := context.WithTimeout(ctx, rand.N(2*time.Millisecond)) //nolint:gosec // any moment will do
		lease, err := l.Acquire(brief, k.Name, &lock.AcquireOptions{Lease: long})
		cancel()
		if err == nil {
			suite.Must(lease.Release(ctx), "releasing what was acquired in time")
		}
		looks(ctx, s.Other, k, false, "what a caller that was cut off may have got")
	}
}

// crowd is for stores with few connections: all of them wait for one key whose holder needs connections to go on.
func crowd(ctx context.Context, s Store) {
	k := key("orders/17")
	t := takes(ctx, s.Driver, k, long, "a new key")
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	var inside atomic.Int32
	var beside atomic.Bool
	errs := make(chan error, 40)
	lockers := []*lock.Locker{locker(s.Driver), locker(s.Other)}
	for i := range cap(errs) {
		waiting.Go(func() {
			errs <- lockers[i%2].Do(ctx, k.Name, &lock.AcquireOptions{Wait: 3 * s.bound(), Lease: long}, func(context.Context) error {
				if inside.Add(1) > 1 {
					beside.Store(true)
				}
				pause(ctx, time.Millisecond)
				inside.Add(-1)
				return nil
			})
		})
	}
	for _, d := range []lock.Driver{s.Driver, s.Other} {
		for range 10 {
			bounded, cancel := context.WithTimeout(ctx, s.bound()/4)
			renews(bounded, true, d, k, t, long, "a key that many wait for")
			cancel()
		}
	}
	gives(ctx, lock.Released, s.Driver, k, t, "a key that many wait for")
	waiting.Wait()
	close(errs)
	for err := range errs {
		suite.Must(err, "one of many waiters")
	}
	suite.Equal(false, beside.Load(), "two of many waiters were let in at once")
}

// handOver has nothing listened to: what is not heard is found all the same.
func handOver(ctx context.Context, s Store) {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	l := locker(s.Other)
	for _, how := range []struct {
		what  string
		lease time.Duration
		end   func(k lock.Key, t lock.Token)
	}{
		{"that is given back", long, func(k lock.Key, t lock.Token) { gives(ctx, lock.Released, s.Driver, k, t, "a key that one waits for") }},
		{"whose lease is ended", long, func(k lock.Key, _ lock.Token) { suite.Must(s.Expire(ctx, k), "expire") }},
		{"whose lease passes", 300 * time.Millisecond, func(lock.Key, lock.Token) {}},
	} {
		k := key("one " + how.what)
		t := takes(ctx, s.Driver, k, how.lease, "a new key")
		got := make(chan error, 1)
		waiting.Go(func() {
			_, err := l.Acquire(ctx, k.Name, &lock.AcquireOptions{Wait: s.bound(), Lease: long})
			got <- err
		})
		how.end(k, t)
		suite.Must(<-got, "waiting for a key "+how.what)
	}
}
