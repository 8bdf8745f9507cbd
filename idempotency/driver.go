package idempotency

import (
	"context"
	"time"

	"caskeleton.dev/tx"
)

// State is where a record stands.
type State string

// The states of a record. A released record is deleted.
const (
	Claimed   State = "CLAIMED"   // an owner is about to run, or is running in its transaction; may be taken over once its lease expired
	Executing State = "EXECUTING" // effects outside the database are under way; never taken over
	Completed State = "COMPLETED" // terminal, with the answer
	Failed    State = "FAILED"    // terminal, with the answer: a refusal
	Abandoned State = "ABANDONED" // interrupted while executing; an operator or the service settles it
)

// Claim is the proof of owning a record. Each operation on the record names all of it, so that a stale owner changes nothing.
type Claim struct {
	Scope     Scope
	Owner     string // the process
	Attempt   int32  // counts claims of this record, from 1; a takeover adds 1
	Operation string // unique to the call that claimed
	Revision  int64  // counts changes of this record, from 1; a takeover adds 1
}

// Request is what a claim is made with.
type Request struct {
	Scope       Scope
	KeyVersion  string
	Tenant      string
	Route       string // method and route, for operators
	Fingerprint Fingerprint
	Owner       string
	Operation   string
	Lease       time.Duration // until others may take an unfinished claim over
	Expiry      time.Duration // until a finished record may be deleted, counted from the claim
}

// Record is what the store says of a scope.
type Record struct {
	Claim
	State        State // "" means that there was no record any more
	Fingerprint  Fingerprint
	LeaseExpired bool // by the store's clock
	Payload      []byte
}

// Driver stores records. All time comparisons use the store's clock, read after the record is locked. Safe for concurrent use.
type Driver interface {
	// Claim makes a CLAIMED record unless the scope has one, by a statement that commits on its own and never waits for the transaction
	// of another operation. It returns the record and whether this call made it.
	Claim(ctx context.Context, r Request) (rec Record, made bool, err error)
	// TakeOver takes a CLAIMED record whose lease has expired from held, the claim that was read. It returns false where the record has
	// changed meanwhile or its holder is alive, which is known by the lock that the holder's transaction has on it.
	TakeOver(ctx context.Context, held Claim, r Request) (Claim, bool, error)
	// Start locks the record for the rest of t, and changes nothing: an update would make duplicates wait for t. It returns [ErrStale] if c is lost.
	Start(ctx context.Context, t *tx.Tx, c Claim) error
	// Complete stores the answer, in t. It returns [ErrStale] if c is lost.
	Complete(ctx context.Context, t *tx.Tx, c Claim, payload []byte) error
	// Fail stores a refusal as the answer, outside of any transaction. It returns [ErrStale] if c is lost.
	Fail(ctx context.Context, c Claim, payload []byte) error
	// Enroll makes the check value of a key version known, by a statement that commits on its own, unless one is known already. It returns
	// [ErrOtherSecret] where that is of another version or has another value.
	Enroll(ctx context.Context, version string, check []byte) error
	// Release deletes the record, so that a repeat runs again. It returns [ErrStale] if c is lost.
	Release(ctx context.Context, c Claim) error
}
