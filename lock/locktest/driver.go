package locktest

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/lock"
)

// TestDriver checks what [lock.Driver] promises, each promise in a subtest of its name.
func TestDriver(t *testing.T, h Harness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("locktest: Harness.New is required: let it return an empty store")
	}
	suite.Test(t, driverChecks(), h.New)
}

func driverChecks() []suite.Check[Store] {
	return []suite.Check[Store]{
		{Name: "one token holds a key", Run: one},
		{Name: "of many at once one gets the key", Run: race},
		{Name: "only its token gives a key back", Run: owner},
		{Name: "releasing again changes nothing", Run: again},
		{Name: "a lease that has passed holds nothing", Run: expired},
		{Name: "a late release is told, and frees nobody else's", Run: late},
		{Name: "a renewal is for the holder while it holds", Run: renewal},
		{Name: "keys are exact", Run: exact},
		{Name: "the holder's lease counts, to its end", Run: length},
		{Name: "a waiter marks the key", Run: mark},
		{Name: "a contended release is announced", Run: hint},
		{Name: "listening ends with its context", Run: deaf},
		{Name: "a call that is cut off leaves nothing behind", Run: cut},
		{Name: "waiters leave the holder its connections", Run: crowd},
		{Name: "a waiter gets what is given back or has passed", Run: handOver},
		{Name: "the history is that of a lock", Run: func(ctx context.Context, s Store) { play(ctx, s, HistoryOptions{Workers: 6, Rounds: 25, Keys: 2}) }},
	}
}

func one(ctx context.Context, s Store) {
	k := key("orders/17")
	looks(ctx, s.Driver, k, false, "a new key")
	t := takes(ctx, s.Driver, k, long, "a new key")
	for name, d := range map[string]lock.Driver{"the same node": s.Driver, "another node": s.Other} {
		refused(ctx, d, k, false, "a held key, from "+name)
		refused(ctx, d, k, true, "a held key, waiting, from "+name)
		looks(ctx, d, k, true, "a held key, from "+name)
	}
	gives(ctx, lock.Released, s.Driver, k, t, "what the first one holds, after others tried")
	looks(ctx, s.Other, k, false, "a key that was given back")
	takes(ctx, s.Other, k, long, "a key that was given back")
}

func race(ctx context.Context, s Store) {
	for round := range 5 {
		k := key("race" + strings.Repeat("!", round))
		if round%2 == 1 { // over the row of one that has passed
			takes(ctx, s.Driver, k, long, "a new key")
			suite.Must(s.Expire(ctx, k), "expire")
		}
		var got atomic.Int32
		var tries sync.WaitGroup
		errs := make(chan error, 16)
		for i := range cap(errs) {
			d := s.Driver
			if i%2 == 1 {
				d = s.Other
			}
			tries.Go(func() {
				h, err := d.Acquire(ctx, k, token(), long, i%4 < 2)
				if err == nil && !h.Held {
					got.Add(1)
				}
				errs <- err
			})
		}
		tries.Wait()
		close(errs)
		for err := range errs {
			suite.Must(err, "contention is no error")
		}
		suite.Equal(1, got.Load(), "tokens that got the key")
	}
}

func owner(ctx context.Context, s Store) {
	k := key("orders/17")
	gives(ctx, lock.Lost, s.Driver, k, token(), "a key that nobody ever held")
	t := takes(ctx, s.Driver, k, long, "a new key")
	gives(ctx, lock.Lost, s.Driver, k, token(), "another's key, from the same node")
	gives(ctx, lock.Lost, s.Other, k, token(), "another's key, from another node")
	looks(ctx, s.Driver, k, true, "a key that others released")
	gives(ctx, lock.Released, s.Other, k, t, "a key, by its token")
}

func again(ctx context.Context, s Store) {
	k := key("orders/17")
	t := takes(ctx, s.Driver, k, long, "a new key")
	gives(ctx, lock.Released, s.Driver, k, t, "a held key")
	gives(ctx, lock.Lost, s.Driver, k, t, "a key that was released before")
	next := takes(ctx, s.Other, k, long, "a key that was given back")
	gives(ctx, lock.Lost, s.Driver, k, t, "a key that was released before and is another's now")
	looks(ctx, s.Driver, k, true, "the key of the next one")
	gives(ctx, lock.Released, s.Other, k, next, "the key of the next one")
}

func expired(ctx context.Context, s Store) {
	k := key("orders/17")
	for _, waiting := range []bool{false, true} {
		takes(ctx, s.Driver, k, long, "a free key")
		suite.Must(s.Expire(ctx, k), "expire")
		looks(ctx, s.Other, k, false, "a key whose lease has passed")
		h, err := s.Other.Acquire(ctx, k, token(), long, waiting)
		suite.Must(err, "acquiring a key whose lease has passed")
		suite.Equal(lock.Holder{}, h, "who holds a key whose lease has passed")
		looks(ctx, s.Driver, k, true, "a key that was taken over")
		suite.Must(s.Expire(ctx, k), "expire")
	}
}

func late(ctx context.Context, s Store) {
	k := key("orders/17")
	t := takes(ctx, s.Driver, k, long, "a new key")
	suite.Must(s.Expire(ctx, k), "expire")
	got, err := s.Driver.Release(ctx, k, t)
	suite.Must(err, "releasing a key whose lease has passed")
	if got != lock.Expired && got != lock.Lost { // a store that forgets what has passed cannot tell them apart
		suite.Fail("releasing a key whose lease has passed: want Expired, or Lost, got %s", word(got))
	}
	gives(ctx, lock.Lost, s.Driver, k, t, "the same again")

	t = takes(ctx, s.Driver, k, long, "a free key")
	suite.Must(s.Expire(ctx, k), "expire")
	next := takes(ctx, s.Other, k, long, "a key whose lease has passed")
	gives(ctx, lock.Lost, s.Driver, k, t, "a key that was taken over")
	renews(ctx, false, s.Driver, k, t, long, "a key that was taken over")
	looks(ctx, s.Driver, k, true, "a key that a stale holder released")
	gives(ctx, lock.Released, s.Other, k, next, "a key that a stale holder released before")
}

func renewal(ctx context.Context, s Store) {
	k := key("orders/17")
	renews(ctx, false, s.Driver, k, token(), long, "a key that nobody ever held")
	t := takes(ctx, s.Driver, k, time.Minute, "a new key")
	renews(ctx, false, s.Other, k, token(), long, "another's key")
	lasts(ctx, s.Other, k, time.Minute, "a lease that another tried to renew")
	for _, lease := range []time.Duration{long, 2 * time.Minute} {
		renews(ctx, true, s.Driver, k, t, lease, "a held key")
		lasts(ctx, s.Other, k, lease, "a lease that was renewed")
	}
	suite.Must(s.Expire(ctx, k), "expire")
	renews(ctx, false, s.Driver, k, t, long, "a key whose lease has passed")
	looks(ctx, s.Other, k, false, "a key whose lease has passed, after a renewal that came late")
}

// length also has the lease pass by itself.
func length(ctx context.Context, s Store) {
	k := key("orders/17")
	t := takes(ctx, s.Driver, k, time.Minute, "a new key")
	lasts(ctx, s.Driver, k, time.Minute, "a new lease")
	refused(ctx, s.Other, k, true, "a held key")
	lasts(ctx, s.Other, k, time.Minute, "a lease beside which another was asked for")
	<-time.After(3 * time.Millisecond)
	h, err := s.Other.Acquire(ctx, k, token(), time.Millisecond, false)
	suite.Must(err, "acquiring a held key for a moment")
	isHeld(h, "a key that is held for longer than the asker would")
	gives(ctx, lock.Released, s.Driver, k, t, "a held key")

	longest := s.Driver.MaxLease()
	t = takes(ctx, s.Driver, k, longest, "a free key, for as long as the store can")
	lasts(ctx, s.Other, k, longest, "the longest lease")
	renews(ctx, true, s.Driver, k, t, longest, "the longest lease")
	lasts(ctx, s.Other, k, longest, "the longest lease, renewed")
	gives(ctx, lock.Released, s.Driver, k, t, "the longest lease")

	takes(ctx, s.Driver, k, 50*time.Millisecond, "a free key")
	wait(ctx, s.Other, k, "a lease of 50 ms")
}

// lasts fails unless about lease is left: no more than it, and all but what the check took.
func lasts(ctx context.Context, d lock.Driver, k lock.Key, lease time.Duration, what string) {
	h := looks(ctx, d, k, true, what)
	if h.Left > lease+time.Second || h.Left < lease-30*time.Second { // a store may round, a machine may be slow
		suite.Fail("%s: %v is left of %v", what, h.Left, lease)
	}
}

// wait has k looked at until it is free, each time when its lease is to have passed.
func wait(ctx context.Context, d lock.Driver, k lock.Key, what string) {
	for {
		h, err := d.Look(ctx, k)
		suite.Must(err, "waiting for the end of "+what)
		if !h.Held {
			return
		}
		select {
		case <-time.After(h.Left):
		case <-ctx.Done():
			suite.Fail("%s does not end: %v is left", what, h.Left)
		}
	}
}

func exact(ctx context.Context, s Store) {
	shared := strings.Repeat("x", 300)
	keys := []lock.Key{
		key(""), key(" "), key("a"), key("A"), key("a "), key("ä"), key("a\u0308"), key("日本語"), key("🔒"), key("a\x00"), key("\xff"), key("\xfe"), key("\uFFFD"),
		key("%"), key("_"), key("a'b"), key("0"), key("641"), key(shared), key(shared + "y"), key(strings.Repeat("long", 30_000)),
		key("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
		{Region: "DEFAULTa", Name: ""},
		{Region: "OTHER", Name: "a"},
		{Region: "OTHE", Name: "Ra"},
	}
	tokens := make([]lock.Token, len(keys))
	for i, k := range keys {
		tokens[i] = takes(ctx, s.Driver, k, long, "a key like others that are held, "+k.Display())
	}
	for i, k := range keys {
		looks(ctx, s.Other, k, true, "a key like others that are held, "+k.Display())
		gives(ctx, lock.Released, s.Other, k, tokens[i], "a key like others that are held, "+k.Display())
		looks(ctx, s.Driver, k, false, "a key like others that are held, "+k.Display())
	}
}

// mark concerns drivers that announce releases; what others say of waiters is not used.
func mark(ctx context.Context, s Store) {
	if _, ok := s.Driver.(lock.Listener); !ok {
		return
	}
	k := key("orders/17")
	for range 2 {
		t := takes(ctx, s.Driver, k, long, "a free key")
		suite.Equal(false, refused(ctx, s.Other, k, false, "a held key").Contended, "a waiter is known where nobody waits")
		suite.Equal(false, looks(ctx, s.Other, k, true, "a held key").Contended, "a waiter is known where nobody waits")
		for range 2 {
			suite.Equal(true, refused(ctx, s.Other, k, true, "a held key").Contended, "the one who waits is known to itself")
			suite.Equal(true, looks(ctx, s.Driver, k, true, "a held key").Contended, "the one who waits is known")
		}
		renews(ctx, true, s.Driver, k, t, long, "a held key")
		suite.Equal(true, looks(ctx, s.Driver, k, true, "a held key").Contended, "the one who waits is known after a renewal")
		gives(ctx, lock.Released, s.Driver, k, t, "a held key")
	}
}
