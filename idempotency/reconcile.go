package idempotency

import (
	"context"
	"errors"

	"caskeleton.dev/tx"
)

// Settlement says what an interrupted operation turned out to have done. The zero value says nothing.
type Settlement struct {
	known  bool
	state  State
	encode func() ([]byte, error) // nil where there is no answer
}

// CompletedWith says that the operation took effect, and v is its answer.
func CompletedWith[T any](v T) Settlement {
	return Settlement{true, Completed, func() ([]byte, error) { return encode(v) }}
}

// RejectedWith says that the operation had no effect, and v is its answer: a refusal.
func RejectedWith[T any](v T) Settlement {
	return Settlement{true, Failed, func() ([]byte, error) { return encode(v) }}
}

// NoEffect says that the operation had no effect, so that a repeat may run it.
func NoEffect() Settlement { return Settlement{known: true, state: released} }

// Reconciler finds out for a service what an interrupted operation did, by asking the system that it called. [Scope.String] of the entry is
// the [Execution.Key] that was sent there. The zero Settlement leaves the record as it is.
type Reconciler func(ctx context.Context, e Entry) (Settlement, error)

// Reconcile settles an ABANDONED record, as c names it. It returns [ErrStale] where the record is not that any more, and [ErrOtherForm] where
// repeats could not read the answer; nothing was changed.
func (g *Guard) Reconcile(ctx context.Context, c Claim, s Settlement) error {
	a, err := g.settles(ctx, c, s)
	if err != nil {
		return err
	}
	return g.driver.Settle(ctx, c, Abandoned, s.state, a)
}

// ReconcileWith does as [Guard.Reconcile] and calls also in the same transaction: both take effect, or neither does. Where the record has
// changed, also is not called.
func (g *Guard) ReconcileWith(ctx context.Context, c Claim, s Settlement, also func(ctx context.Context, t *tx.Tx) error) error {
	a, err := g.settles(ctx, c, s) // a ResponseStore is not waited for with a transaction open
	if err != nil {
		return err
	}
	return g.alone(ctx, func(ctx context.Context, t *tx.Tx) error {
		if err := g.driver.Reconcile(ctx, t, c, s.state, a); err != nil {
			return err
		}
		return also(ctx, t)
	})
}

// settles returns the answer of a settlement, and where it is kept.
func (g *Guard) settles(ctx context.Context, c Claim, s Settlement) (Answer, error) {
	switch {
	case !s.known:
		return Answer{}, errors.New("idempotency: the settlement is empty; make one with CompletedWith, RejectedWith or NoEffect")
	case s.encode == nil:
		return Answer{}, nil
	}
	payload, err := s.encode()
	if err != nil {
		return Answer{}, err
	}
	if err := c.accepts(payload); err != nil {
		return Answer{}, err
	}
	return g.store(ctx, c, payload)
}

// Scopes returns what a key is recorded under: under the current version of the secret first, and under the others.
func (g *Guard) Scopes(key Key) ([]Scope, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	return g.keys.scopes(key), nil
}

// Show returns the record of a key, or [ErrNoRecord].
func (g *Guard) Show(ctx context.Context, key Key) (Entry, error) {
	scopes, err := g.Scopes(key)
	if err != nil {
		return Entry{}, err
	}
	return g.find(ctx, scopes)
}

// ShowScope returns the record of a scope, or [ErrNoRecord].
func (g *Guard) ShowScope(ctx context.Context, s Scope) (Entry, error) {
	return g.find(ctx, []Scope{s})
}

func (g *Guard) find(ctx context.Context, scopes []Scope) (Entry, error) {
	e, found, err := g.driver.Find(ctx, scopes)
	if err == nil && !found {
		err = ErrNoRecord
	}
	return e, err
}

// Answer returns the stored answer of a scope. It returns [ErrNoRecord] where there is no record, and where the operation has no answer
// yet.
func (g *Guard) Answer(ctx context.Context, s Scope) ([]byte, error) {
	rec, found, err := g.driver.Read(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case !found || rec.State != Completed && rec.State != Failed:
		return nil, ErrNoRecord
	}
	return g.load(ctx, rec.Answer)
}

// List returns up to limit records of a state, the oldest first, from after on; the zero Cursor is the beginning. EXECUTING and ABANDONED
// records are found by an index; for other states all records are read.
func (g *Guard) List(ctx context.Context, state State, after Cursor, limit int) ([]Entry, error) {
	return g.driver.List(ctx, state, after, limit)
}
