package idempotency

import (
	"context"
	"time"

	"caskeleton.dev/tx"
)

// Driver stores records. All time comparisons use the store's clock, read after the record is locked. Safe for concurrent use.
type Driver interface {
	Claims
	Keeper
}

// Claims are what operations do with their records.
type Claims interface {
	// Claim makes a CLAIMED record of r.Scope unless there is one of r.Scope or r.Former, by a statement that commits on its own and never
	// waits for the transaction of another operation. It returns the record that is there then, and whether this call made it; where there
	// are several, one with an answer.
	Claim(ctx context.Context, r Request) (rec Record, made bool, err error)
	// TakeOver takes a CLAIMED record whose lease has expired from held, the claim that was read. It returns false where the record has
	// changed meanwhile or its holder is alive, which is known by the lock that the holder's transaction has on it.
	TakeOver(ctx context.Context, held Claim, r Request) (Claim, bool, error)
	// Start locks the record for the rest of t, and changes nothing: an update would make duplicates wait for t. It returns [ErrStale] if c
	// is lost, and [ErrRival] if one of the others has a record too.
	Start(ctx context.Context, t *tx.Tx, c Claim, others []Scope) error
	// Complete stores the answer of a CLAIMED record, in t, to be kept from then on for as long as it was to be from the claim on. It returns
	// [ErrStale] if c is lost.
	Complete(ctx context.Context, t *tx.Tx, c Claim, a Answer) error
	// Execute makes a CLAIMED record EXECUTING, for lease from now, by a statement that commits on its own, and returns the claim as it is
	// then. It returns [ErrStale] if c is lost, and [ErrRival] if one of the others has a record too.
	Execute(ctx context.Context, c Claim, lease time.Duration, others []Scope) (Claim, error)
	// Renew has the lease of an EXECUTING record end after lease from now, whether or not it has expired. It returns [ErrStale] if c is lost.
	Renew(ctx context.Context, c Claim, lease time.Duration) error
	// Settle moves a record of state from to state to, by a statement that commits on its own: with the answer where to is COMPLETED or
	// FAILED, kept as by Complete, and deleting the record where it is "". It returns [ErrStale] if c is lost, or the record is not in state
	// from.
	Settle(ctx context.Context, c Claim, from, to State, a Answer) error
	// Abandon makes an EXECUTING record ABANDONED if its lease has expired, and tells whether it did.
	Abandon(ctx context.Context, c Claim) (bool, error)
	// Enroll makes the check values of key versions known, unless they are, by statements that commit on their own. It returns
	// [ErrOtherSecret] where a known version is not among them or has another value, and where versions are known and current is not.
	Enroll(ctx context.Context, current string, checks map[string][]byte) error
}

// Keeper is what operators and the reaper do with records.
type Keeper interface {
	// Find returns the record of one of scopes, of several one with an answer, and false where there is none.
	Find(ctx context.Context, scopes []Scope) (Entry, bool, error)
	// Read returns the record of a scope with its answer, wherever the driver keeps it, and false where there is none.
	Read(ctx context.Context, s Scope) (Record, bool, error)
	// List returns up to limit records of a state, the oldest first, from after on; the zero Cursor is the beginning.
	List(ctx context.Context, state State, after Cursor, limit int) ([]Entry, error)
	// Expire makes up to limit EXECUTING records ABANDONED whose lease has expired, and returns how many. It skips what others have locked.
	Expire(ctx context.Context, limit int) (int, error)
	// Reap looks at up to limit records that were made at least age ago, the oldest first, from after on, and deletes those that have expired
	// and are COMPLETED or FAILED, or CLAIMED with an expired lease. It skips what others have locked. It returns how many it deleted, and
	// where it stopped: the zero Cursor at the end.
	Reap(ctx context.Context, age time.Duration, after Cursor, limit int) (deleted int, next Cursor, err error)
	// Reconcile moves an ABANDONED record to state to, in t: with the answer where that is COMPLETED or FAILED, and deleting the record where it
	// is "". It returns [ErrStale] if the record has changed since c was read; of two at once, the second one is told so.
	Reconcile(ctx context.Context, t *tx.Tx, c Claim, to State, a Answer) error
	// Live returns those of refs that a record refers to, or may yet: one that is of their scope and operation, and has no answer.
	Live(ctx context.Context, refs []Ref) ([]Ref, error)
	// Retire forgets a key version that no record is of, in t, and tells whether it did.
	Retire(ctx context.Context, t *tx.Tx, version string) (bool, error)
}
