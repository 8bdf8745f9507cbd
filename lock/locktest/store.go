package locktest

import (
	"cmp"
	"context"
	"crypto/rand"
	"testing"
	"time"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/lock"
)

// Harness makes what the tests of this package test.
type Harness struct {
	// New returns a store that no other check uses: they run in parallel. It cleans up by t.Cleanup.
	New func(t *testing.T) Store
}

// Store keeps the locks under test, none at first.
type Store struct {
	Driver lock.Driver
	Other  lock.Driver // another node on the same store
	// Expire makes the lease of whoever holds k pass now, as if its time had gone by. Nothing else changes; a free key stays free.
	Expire func(ctx context.Context, k lock.Key) error

	soon time.Duration
}

// bound is what is enough for any store to do a few things in.
func (s Store) bound() time.Duration { return cmp.Or(s.soon, 10*time.Second) }

// long is a lease that outlasts any check.
const long = 10 * time.Minute

// token returns a new one.
func token() (t lock.Token) {
	_, _ = rand.Read(t[:]) // it never fails
	return t
}

func key(name string) lock.Key { return lock.Key{Region: "DEFAULT", Name: name} }

// takes has a new token acquire k, and fails unless it gets it.
func takes(ctx context.Context, d lock.Driver, k lock.Key, lease time.Duration, what string) lock.Token {
	t := token()
	h, err := d.Acquire(ctx, k, t, lease, false)
	suite.Must(err, "acquiring "+what)
	if h != (lock.Holder{}) {
		suite.Fail("acquiring %s: it is to be free, and %+v has it", what, h)
	}
	return t
}

// refused has a new token try to acquire k, and fails unless another holds it.
func refused(ctx context.Context, d lock.Driver, k lock.Key, waiting bool, what string) lock.Holder {
	h, err := d.Acquire(ctx, k, token(), long, waiting)
	suite.Must(err, "acquiring "+what)
	isHeld(h, what)
	return h
}

// looks fails unless k is held or not, as told.
func looks(ctx context.Context, d lock.Driver, k lock.Key, held bool, what string) lock.Holder {
	h, err := d.Look(ctx, k)
	suite.Must(err, "looking at "+what)
	if held {
		isHeld(h, what)
	} else if h != (lock.Holder{}) {
		suite.Fail("%s: it is to be free, and %+v has it", what, h)
	}
	return h
}

func isHeld(h lock.Holder, what string) {
	if !h.Held || h.Left <= 0 {
		suite.Fail("%s: it is to be held with some of its lease left, and the answer is %+v", what, h)
	}
}

// gives releases and fails unless the answer is want.
func gives(ctx context.Context, want lock.Freed, d lock.Driver, k lock.Key, t lock.Token, what string) {
	got, err := d.Release(ctx, k, t)
	suite.Must(err, "releasing "+what)
	suite.Equal(word(want), word(got), "releasing "+what)
}

// renews fails unless the answer is want.
func renews(ctx context.Context, want bool, d lock.Driver, k lock.Key, t lock.Token, lease time.Duration, what string) {
	got, err := d.Renew(ctx, k, t, lease)
	suite.Must(err, "renewing "+what)
	suite.Equal(want, got, "renewing "+what)
}

func word(f lock.Freed) string {
	return map[lock.Freed]string{0: "none", lock.Released: "Released", lock.Expired: "Expired", lock.Lost: "Lost"}[f]
}
