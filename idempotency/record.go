package idempotency

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"
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

const released State = ""

// Claim is the proof of owning a record. Each operation on the record names all of it, so that a stale owner changes nothing.
type Claim struct {
	Scope     Scope
	Owner     string // the process
	Attempt   int32  // counts claims of this record, from 1; a takeover adds 1
	Operation string // unique to the call that claimed; behind the form of its answer, where that is known
	Revision  int64  // counts changes of this record, from 1, but not renewals of its lease
}

// formSeparator is in no form and in nothing random.
const formSeparator = "-"

func newOperation(form string) string {
	if form == "" {
		return rand.Text()
	}
	return form + formSeparator + rand.Text()
}

// Request is what a claim is made with.
type Request struct {
	Scope       Scope
	Former      []Scope // the scopes of the same key under the other versions of the secret
	KeyVersion  string
	Tenant      string
	Route       string // method and route, for operators
	Fingerprint Fingerprint
	Owner       string
	Operation   string
	Lease       time.Duration // until others may take an unfinished claim over
	Expiry      time.Duration // until a finished record may be deleted, counted from its answer
}

// Answer is what an operation returned, as it is stored.
type Answer struct {
	Payload []byte // nil if and only if there is a Ref, or no answer
	Large   bool   // the payload is over the inline limit: it is kept apart from the records, and changes together with them
	Ref     Ref    // where a ResponseStore has it, if there is one
}

// Record is what the store says of a scope.
type Record struct {
	Claim
	Answer

	State        State // "" means that there was no record any more
	Fingerprint  Fingerprint
	LeaseExpired bool // by the store's clock
}

// Entry is a record as operators see it.
type Entry struct {
	Claim

	State        State
	KeyVersion   string
	Tenant       string
	Route        string
	Lease        time.Time // when it expires, or did
	LeaseExpired bool      // by the store's clock
	Expiry       time.Time // when a finished record may be deleted
	Created      time.Time
	Updated      time.Time
}

// Cursor is a place in a list of entries.
type Cursor struct {
	Created time.Time
	Scope   Scope
}

// Cursor is the place behind the entry.
func (e Entry) Cursor() Cursor { return Cursor{e.Created, e.Scope} }

// String returns the cursor in one word that [ParseCursor] reads.
func (c Cursor) String() string {
	return c.Created.UTC().Format(time.RFC3339Nano) + "_" + c.Scope.String()
}

// ParseCursor reads what [Cursor.String] wrote.
func ParseCursor(text string) (Cursor, error) {
	created, scope, _ := strings.Cut(text, "_")
	at, err := time.Parse(time.RFC3339Nano, created)
	if err != nil {
		return Cursor{}, fmt.Errorf("idempotency: %q is no cursor; give one that a list has returned", text)
	}
	s, err := ParseScope(scope)
	if err != nil {
		return Cursor{}, err
	}
	return Cursor{at.UTC(), s}, nil
}
