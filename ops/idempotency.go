package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"caskeleton.dev/audit"
	"caskeleton.dev/idempotency"
)

// MaxList is the most records that are listed at a time.
const MaxList = 1000

// maxActions is how many actions on one record are shown.
const maxActions = 100

// Kinds of what is acted on, as an [audit.Trail] has them.
const (
	kindRecord = "idempotency_record" // by its scope
	kindKey    = "idempotency_key"    // by its version
)

// Idempotency is what operators do with records of keyed operations. Safe for concurrent use.
type Idempotency struct {
	guard *idempotency.Guard
	trail *audit.Trail
	log   *slog.Logger
}

// NewIdempotency returns the use cases on the records of g. Each change is recorded in trail, which is kept by the same database, and logged to log.
func NewIdempotency(g *idempotency.Guard, trail *audit.Trail, log *slog.Logger) (*Idempotency, error) {
	if g == nil || trail == nil || log == nil {
		return nil, errors.New("ops: a guard, a trail and a logger are required")
	}
	return &Idempotency{g, trail, log}, nil
}

// Shown is a record, by its scope, and what operators did to it.
type Shown struct {
	Scope   idempotency.Scope
	Entry   *idempotency.Entry // nil where the record is gone, as it is after a settlement without effect
	Actions []audit.Entry      // of operators on it, the latest first, 100 at most
}

// Show returns the record of a scope, written as [idempotency.Scope.String] does, and what operators did to it. It returns
// [idempotency.ErrNoRecord] where there is neither.
func (o *Idempotency) Show(ctx context.Context, scope string) (Shown, error) {
	s, err := parse(scope)
	if err != nil {
		return Shown{}, err
	}
	e, err := o.guard.ShowScope(ctx, s)
	return o.shown(ctx, e, err, []idempotency.Scope{s})
}

// ShowKey returns the record of a key, and what operators did to it. It returns [idempotency.ErrNoRecord] where there is neither, and where
// the guard does not have the secret that the key was claimed under.
func (o *Idempotency) ShowKey(ctx context.Context, key idempotency.Key) (Shown, error) {
	for _, part := range []struct{ field, value, fix string }{
		{"method", key.Method, "give the method of the request, as POST"},
		{"route", key.Route, "give the pattern that the request matched, as /orders/{id}/cancel"},
		{"key", key.Client, "give the Idempotency-Key that the client sent"},
	} {
		if part.value == "" {
			return Shown{}, invalid(part.field, "is missing", part.fix)
		}
	}
	scopes, err := o.guard.Scopes(key)
	if err != nil {
		return Shown{}, err
	}
	e, err := o.guard.Show(ctx, key)
	return o.shown(ctx, e, err, scopes)
}

// shown adds the actions to what was found. Where nothing was, those on the first of scopes that has any are all there is.
func (o *Idempotency) shown(ctx context.Context, e idempotency.Entry, err error, scopes []idempotency.Scope) (Shown, error) {
	gone := errors.Is(err, idempotency.ErrNoRecord)
	switch {
	case err == nil:
		scopes = []idempotency.Scope{e.Scope}
	case !gone:
		return Shown{}, err
	}
	for _, s := range scopes {
		actions, err := o.trail.Of(ctx, kindRecord, s.String(), maxActions)
		switch {
		case err != nil:
			return Shown{}, err
		case !gone:
			return Shown{s, &e, actions}, nil
		case len(actions) > 0:
			return Shown{s, nil, actions}, nil
		}
	}
	return Shown{}, err
}

// Answer returns the answer of a scope as it is stored, or [idempotency.ErrNoRecord] where there is none. It may hold what not every operator
// should see.
func (o *Idempotency) Answer(ctx context.Context, s idempotency.Scope) ([]byte, error) {
	return o.guard.Answer(ctx, s)
}

// Page is a part of a list.
type Page struct {
	Entries []idempotency.Entry
	Next    string // what goes on behind it, "" at the end
}

// Abandoned lists up to limit interrupted operations, the oldest first, behind a [Page.Next], or from the beginning where after is "". Going on from
// page to page, one sees each operation that stays abandoned once, whatever is settled, deleted or abandoned meanwhile.
func (o *Idempotency) Abandoned(ctx context.Context, after string, limit int) (Page, error) {
	if limit < 1 || limit > MaxList {
		return Page{}, invalid("limit", fmt.Sprintf("is %d", limit), fmt.Sprintf("use 1 to %d", MaxList))
	}
	var from idempotency.Cursor
	if after != "" {
		var err error
		if from, err = idempotency.ParseCursor(after); err != nil {
			return Page{}, invalid("after", fmt.Sprintf("is %q", after), "give what the page before said to go on from, or leave it out")
		}
	}
	entries, err := o.guard.List(ctx, idempotency.Abandoned, from, limit+1)
	if err != nil || len(entries) <= limit {
		return Page{Entries: entries}, err
	}
	return Page{entries[:limit], entries[limit-1].Cursor().String()}, nil
}

func parse(scope string) (idempotency.Scope, error) {
	s, err := idempotency.ParseScope(scope)
	if err != nil {
		return s, invalid("scope", fmt.Sprintf("is %q", scope), fmt.Sprintf("give its %d hexadecimal digits, as the list has them", 2*len(s)))
	}
	return s, nil
}
