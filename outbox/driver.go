package outbox

import (
	"context"
	"time"

	"caskeleton.dev/tx"
)

// Claim is the lease that one relay has on one lane, and the events it may publish. Settling names all of it, so that a stale owner
// changes nothing.
type Claim struct {
	Lane
	Owner   string    // the relay
	Token   string    // new with every claim, also of a lane that was removed and made again
	Attempt int       // claims of the present head, from 1
	Epoch   int64     // of the control row; a settlement under another epoch changes nothing
	Next    int64     // sequence of the head
	Since   time.Time // no event of the run was recorded before
	Due     time.Time // when the lane had come due, by the database's clock: ClaimRequest.Floor starts where a full claim ended
	Run     []Event   // committed, consecutive from Next, at most RunSize; empty where nothing is there yet
	More    bool      // more is committed behind Run, so the lane is due again at once
	Gap     bool      // an event is missing right after Run: the lane must not move past it
}

// ClaimRequest says what to claim.
type ClaimRequest struct {
	Owner   string
	Limit   int           // lanes at most
	RunSize int           // events a lane at most
	Lease   time.Duration // by the database's clock, from the claim
	Rung    []Lane        // named by a doorbell: claimed first where they are free, not held and not backing off; half of Limit at most
	Floor   time.Time     // lanes due before are not looked at; the zero time looks at all
}

// Settlement says what became of a claim.
type Settlement struct {
	Claim    Claim
	Acked    int           // how many of the run the broker named as stored, from the first on
	Failure  string        // why the next one was not, as fault.Reason says it: storable, one line, 500 bytes at most; "" if none failed
	Retry    time.Duration // how long the failed head waits
	GiveBack bool          // nothing was tried: the attempt does not count and the lane is due at once
}

// Driver keeps events and lanes. Claims and settlements commit on their own. Safe for concurrent use.
type Driver interface {
	// Append records events in t, in one round trip, locking their aggregates in sorted order. The events are valid and have ids.
	Append(ctx context.Context, t *tx.Tx, events []Event) error
	// Claim leases lanes that are due. It never waits for an append or another relay. It returns every lane it leased, with or without
	// a run, and beside an error too where it knows them.
	Claim(ctx context.Context, r ClaimRequest) ([]Claim, error)
	// Settle moves lanes past what was acknowledged and gives them back, in one round trip. A drained lane is removed, unless an append is
	// open on it. It returns the lanes whose claim was lost: nothing of theirs was changed.
	Settle(ctx context.Context, s []Settlement) (lost []Lane, err error)
	// Renew extends the leases of claims and returns the lanes whose claim was lost. [Relay] does not call it: it starts no publish that could
	// outlast its lease. It is for relays whose publishes may.
	Renew(ctx context.Context, c []Claim, lease time.Duration) (lost []Lane, err error)
	// NextDue returns the smallest due time of a lane that is not held, as the time from now (negative if past), which a relay sleeps for,
	// and as the database's own time, which a ClaimRequest.Floor compares with. It reports false where there is none.
	NextDue(ctx context.Context) (in time.Duration, at time.Time, ok bool, err error)
}
