package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"caskeleton.dev/idempotency"
)

// MaxList is the most records that are listed at a time.
const MaxList = 1000

// Idempotency is what operators do with records of keyed operations. Safe for concurrent use.
type Idempotency struct {
	guard *idempotency.Guard
	log   *slog.Logger
}

// NewIdempotency returns the use cases on the records of g. Each change is logged to log.
func NewIdempotency(g *idempotency.Guard, log *slog.Logger) (*Idempotency, error) {
	if g == nil || log == nil {
		return nil, errors.New("ops: a guard and a logger are required")
	}
	return &Idempotency{g, log}, nil
}

// Show returns the record of a scope, as [idempotency.Scope.String] writes it, or [idempotency.ErrNoRecord].
func (o *Idempotency) Show(ctx context.Context, scope string) (idempotency.Entry, error) {
	s, err := parse(scope)
	if err != nil {
		return idempotency.Entry{}, err
	}
	return o.guard.ShowScope(ctx, s)
}

// ShowKey returns the record of a key, or [idempotency.ErrNoRecord]: also where the guard has another secret than those who claimed it.
func (o *Idempotency) ShowKey(ctx context.Context, key idempotency.Key) (idempotency.Entry, error) {
	for _, part := range []struct{ field, value, fix string }{
		{"method", key.Method, "give the method of the request, as POST"},
		{"route", key.Route, "give the pattern that the request matched, as /orders/{id}/cancel"},
		{"key", key.Client, "give the Idempotency-Key that the client sent"},
	} {
		if part.value == "" {
			return idempotency.Entry{}, invalid(part.field, "is missing", part.fix)
		}
	}
	return o.guard.Show(ctx, key)
}

// Answer returns the answer of a scope as it is stored, or [idempotency.ErrNoRecord] where there is none. It may hold what not every operator
// should see.
func (o *Idempotency) Answer(ctx context.Context, s idempotency.Scope) ([]byte, error) {
	return o.guard.Answer(ctx, s)
}

// Abandoned lists up to limit interrupted operations, the oldest first, from after on; the zero Cursor is the beginning.
func (o *Idempotency) Abandoned(ctx context.Context, after idempotency.Cursor, limit int) ([]idempotency.Entry, error) {
	if limit < 1 || limit > MaxList {
		return nil, invalid("limit", fmt.Sprintf("is %d", limit), fmt.Sprintf("use 1 to %d", MaxList))
	}
	return o.guard.List(ctx, idempotency.Abandoned, after, limit)
}

// Stored is an answer as it is stored: JSON, or what the MarshalBinary of the service's own type returned.
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

// Reconcile settles an ABANDONED record, and returns it as it was. answer is nil with [NoEffect], and only then. Where the record
// changes meanwhile it returns [idempotency.ErrStale], and nothing was changed.
func (o *Idempotency) Reconcile(ctx context.Context, scope string, v Verdict, answer Stored, act Act) (idempotency.Entry, error) {
	s, err := parse(scope)
	if err != nil {
		return idempotency.Entry{}, err
	}
	settlement, err := v.settlement(answer)
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
	if err := o.guard.Reconcile(ctx, e.Claim, settlement); err != nil {
		return e, err
	}
	o.log.InfoContext(ctx, "idempotency record reconciled", "operator", act.Operator, "reason", act.Reason, "scope", e.Scope.String(),
		"verdict", string(v), "route", e.Route, "tenant", e.Tenant, "attempt", e.Attempt, "revision", e.Revision)
	return e, nil
}

func parse(scope string) (idempotency.Scope, error) {
	s, err := idempotency.ParseScope(scope)
	if err != nil {
		return s, invalid("scope", fmt.Sprintf("is %q", scope), fmt.Sprintf("give its %d hexadecimal digits, as the list has them", 2*len(s)))
	}
	return s, nil
}

func (v Verdict) settlement(answer Stored) (idempotency.Settlement, error) {
	switch {
	case v == NoEffect && answer != nil:
		return idempotency.Settlement{}, invalid("answer", "is given for an operation without effect, which has none", "leave it out, or say "+string(Refused))
	case v == NoEffect:
		return idempotency.NoEffect(), nil
	case v != TookEffect && v != Refused:
		return idempotency.Settlement{}, invalid("verdict", fmt.Sprintf("is %q", string(v)), fmt.Sprintf("say %s, %s or %s", TookEffect, Refused, NoEffect))
	case answer == nil:
		return idempotency.Settlement{}, invalid("answer", "is missing", "give what repeats are to get, or say "+string(NoEffect)+" if nothing was done")
	case v == Refused:
		return idempotency.RejectedWith(answer), nil
	}
	return idempotency.CompletedWith(answer), nil
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
