package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// Stored is an answer in its stored form: JSON, or what the MarshalBinary of the service's own type returned.
type Stored []byte

// MarshalBinary returns it as it is.
func (s Stored) MarshalBinary() ([]byte, error) { return s, nil }

// Verdict is what an interrupted operation turned out to have done.
type Verdict string

// The verdicts.
const (
	TookEffect Verdict = "completed" // with an answer, which repeats get
	Refused    Verdict = "rejected"  // no effect, and an answer which repeats get
	NoEffect   Verdict = "no-effect" // a repeat runs it
)

// JSONAnswer checks an answer of an operation that returns plain values.
func JSONAnswer(b []byte) (Stored, error) {
	if !json.Valid(b) {
		return nil, invalid("answer", "is no JSON", "give the value as the operation returns it, in JSON")
	}
	return b, nil
}

// recordState is what a trail has of a record: what tells which operation it was, once the record is gone.
type recordState struct {
	State    string    `json:"state"`
	Tenant   string    `json:"tenant"`
	Route    string    `json:"route"`
	Owner    string    `json:"owner"`
	Attempt  int32     `json:"attempt"`
	Revision int64     `json:"revision"`
	Created  time.Time `json:"created_at"`
}

// settled is what a trail has of a settlement. The answer is in the record alone.
type settled struct {
	Verdict Verdict `json:"verdict"`
	State   string  `json:"state,omitempty"` // of the record, where there still is one
	Answer  int     `json:"answer_bytes,omitempty"`
}

// Reconcile settles an ABANDONED record, and returns it as it was. answer is nil with [NoEffect], and only then. Who said so, and why, is recorded with
// it, as "idempotency.reconcile". Where the record changes meanwhile it returns [idempotency.ErrStale]; then, and after any other error but
// DB_COMMIT_UNKNOWN, nothing was changed or recorded.
func (o *Idempotency) Reconcile(ctx context.Context, scope string, v Verdict, answer Stored, act Act) (idempotency.Entry, error) {
	s, err := parse(scope)
	if err != nil {
		return idempotency.Entry{}, err
	}
	settlement, state, err := v.settlement(answer)
	if err != nil {
		return idempotency.Entry{}, err
	}
	if err := act.validate(); err != nil {
		return idempotency.Entry{}, err
	}
	e, err := o.guard.ShowScope(ctx, s)
	if err != nil {
		return idempotency.Entry{}, err
	}
	if e.State != idempotency.Abandoned {
		return e, invalid("scope", "has a record that is "+string(e.State), unsettled(e.State))
	}
	kept, err := act.on("idempotency.reconcile", kindRecord, e.Scope.String(),
		recordState{string(e.State), e.Tenant, e.Route, e.Owner, e.Attempt, e.Revision, e.Created}, settled{v, string(state), len(answer)})
	if err != nil {
		return e, err
	}
	err = o.guard.ReconcileWith(ctx, e.Claim, settlement, func(ctx context.Context, t *tx.Tx) error { return o.trail.Record(ctx, t, kept) })
	switch {
	case errors.Is(err, idempotency.ErrOtherForm):
		return e, invalid("answer", "is not of the form that repeats of the operation read", "give the status too for an HTTP route, and leave it out for any other operation")
	case err != nil:
		return e, err
	}
	o.log.InfoContext(ctx, "idempotency record reconciled", "operator", act.Operator, "reason", act.Reason, "scope", e.Scope.String(),
		"verdict", string(v), "route", e.Route, "tenant", e.Tenant, "attempt", e.Attempt, "revision", e.Revision)
	return e, nil
}

// settlement also returns the state of the record that is settled so, "" where it is given back.
func (v Verdict) settlement(answer Stored) (idempotency.Settlement, idempotency.State, error) {
	switch {
	case v == NoEffect && answer != nil:
		return idempotency.Settlement{}, "", invalid("answer", "is given for an operation without effect, which has none", "leave it out, or say "+string(Refused))
	case v == NoEffect:
		return idempotency.NoEffect(), "", nil
	case v != TookEffect && v != Refused:
		return idempotency.Settlement{}, "", invalid("verdict", fmt.Sprintf("is %q", string(v)), fmt.Sprintf("say %s, %s or %s", TookEffect, Refused, NoEffect))
	case answer == nil:
		return idempotency.Settlement{}, "", invalid("answer", "is missing", "give what repeats are to get, or say "+string(NoEffect)+" if nothing was done")
	case v == Refused:
		return idempotency.RejectedWith(answer), idempotency.Failed, nil
	}
	return idempotency.CompletedWith(answer), idempotency.Completed, nil
}

// unsettled says what to do about a record that is not to be settled.
func unsettled(s idempotency.State) string {
	switch s {
	case idempotency.Executing:
		return "wait: if it is still EXECUTING when its lease has expired, the reaper abandons it"
	case idempotency.Claimed:
		return "send the request again: it has done nothing yet, and is taken over once its lease has expired"
	}
	return "nothing is to be done: repeats get the answer that it has"
}
