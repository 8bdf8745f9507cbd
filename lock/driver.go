package lock

import (
	"context"
	"time"
)

// Token names one acquisition. It is random, so that a stale holder matches nothing.
type Token [16]byte

// Holder is who has a key, as the store's clock saw it.
type Holder struct {
	Held      bool
	Left      time.Duration // until the holder's lease expires; above 0 where Held
	Contended bool          // a waiter is known to the store: the holder's release will be announced to Listeners
}

// Freed is what a store found when a holder gave a key back.
type Freed int

// What a driver may find. In each case the token's row is gone afterwards, and nobody else's was touched.
const (
	Released Freed = iota + 1 // it was held to the end
	Expired                   // nobody had taken it yet, but its lease had passed
	Lost                      // the token held nothing: another one had taken it, or it was given back before
)

// Driver keeps who holds which key. It only answers: waiting, deadlines, hints, codes and metrics are the port's. Leases are measured by the store's
// own clock, read after the row is locked. Contention is an answer, not an error; what the store reports as a collision all the same
// (DB_SERIALIZATION_FAILURE, DB_DEADLOCK, DB_LOCK_TIMEOUT) is passed on, and the port asks again. ctx ends only once the port gives the store up, 1 s
// after its caller at the earliest: then a method returns, and may break off. No method joins a transaction of the caller's, and none holds a
// connection once it has returned. Safe for concurrent use.
type Driver interface {
	// Acquire gives k to token for lease if nobody holds it, and returns the zero Holder. Otherwise it returns who does; with waiting, it has then
	// marked the key as contended. A holder whose lease has passed holds nothing.
	Acquire(ctx context.Context, k Key, token Token, lease time.Duration, waiting bool) (Holder, error)
	// Look returns who holds k. It writes nothing and locks nothing.
	Look(ctx context.Context, k Key) (Holder, error)
	// Renew makes token's lease on k end lease from now. It returns false, and changes nothing, where token does not hold k any more, which a holder
	// whose lease has passed does not, taken over or not.
	Renew(ctx context.Context, k Key, token Token, lease time.Duration) (bool, error)
	// Release gives k back. It is safe to repeat.
	Release(ctx context.Context, k Key, token Token) (Freed, error)
	// MaxLease is the longest lease that the store can keep.
	MaxLease() time.Duration
}

// Listener is a [Driver] that hears of releases in other processes.
type Listener interface {
	// Listen calls ring for each release of a contended key, until ctx ends or the connection is lost; then it returns an error. It calls ready
	// whenever it begins to hear: what was released before may have been missed. ring and ready do not block. Listening is a hint: a release that
	// nobody hears is found by polling.
	Listen(ctx context.Context, ready func(), ring func(Digest)) error
}
