package idempotency

import (
	"context"
	"errors"
	"sync"

	"caskeleton.dev/fault"
)

// lookups lets one caller of a process at a time ask the store about a key; callers that come meanwhile wait for its result. However many
// there are, they take one connection, and the operation that runs does not wait behind them for its own.
type lookups struct {
	mu    sync.Mutex
	byKey map[Scope]*lookup
}

// lookup is one that is under way, or was.
type lookup struct {
	done  chan struct{} // closed once the rest is set
	found Record
	taken bool // the record is of whoever asked
	err   error
	known bool // false where whoever asked has left, or panicked
}

// join returns the lookup of a key that is under way, or begins one, which is the caller's to end.
func (ls *lookups) join(key Scope) (l *lookup, mine bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.byKey[key]; l != nil {
		return l, false
	}
	l = &lookup{done: make(chan struct{})}
	ls.byKey[key] = l
	return l, true
}

func (ls *lookups) end(key Scope, l *lookup) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.byKey, key)
	close(l.done)
}

// lookUp claims the key of req, and tells whether it did, or returns the record that stands there.
func (g *Guard) lookUp(ctx context.Context, req Request) (rec Record, ours bool, err error) {
	for fresh := false; ; fresh = true { // the second one to be joined has begun since the caller came
		l, mine := g.lookups.join(req.Scope)
		if mine {
			defer g.lookups.end(req.Scope, l)
			l.found, l.taken, l.err = g.look(ctx, req)
			l.known = l.err == nil || ctx.Err() == nil
			return l.found, l.taken, l.err
		}
		select {
		case <-ctx.Done():
			return Record{}, false, left(ctx)
		case <-l.done:
		}
		// What may have changed before the caller came is no answer to it: a finished operation does not change, and one that was just
		// claimed runs now.
		if l.known && (fresh || l.taken || l.found.finished()) && !l.found.open(req.Fingerprint) {
			return l.found, false, l.err
		}
	}
}

// look asks the store.
func (g *Guard) look(ctx context.Context, req Request) (rec Record, ours bool, err error) {
	for range maxLooks {
		rec, ours, err = g.driver.Claim(ctx, req)
		switch {
		case err != nil:
			g.forget(ctx, err, Claim{Scope: req.Scope, Owner: req.Owner, Attempt: 1, Operation: req.Operation, Revision: 1})
			return Record{}, false, err
		case ours:
			return rec, true, nil
		case rec.State == "":
			continue // it vanished between the statements: released or reaped
		case !rec.open(req.Fingerprint):
			return rec, false, nil
		case rec.State == Executing:
			marked, err := g.driver.Abandon(ctx, rec.Claim)
			switch {
			case err != nil:
				return Record{}, false, err
			case marked:
				g.metrics.abandoned.Add(ctx, 1)
				rec.State = Abandoned
				return rec, false, nil
			}
			continue // it was renewed, or ended
		}
		c, taken, err := g.driver.TakeOver(ctx, rec.Claim, req)
		switch {
		case err != nil:
			g.forget(ctx, err, Claim{Scope: rec.Scope, Owner: req.Owner, Attempt: rec.Attempt + 1, Operation: req.Operation, Revision: rec.Revision + 1})
			return Record{}, false, err
		case taken:
			rec.Claim = c
		}
		rec.LeaseExpired = false // it is ours, or its holder is alive
		return rec, taken, nil
	}
	return Record{}, false, nil
}

func (r Record) finished() bool { return r.State == Completed || r.State == Failed }

// open reports whether a request may try for the record: its owner seems to have died.
func (r Record) open(fp Fingerprint) bool {
	return r.LeaseExpired && r.Fingerprint == fp && (r.State == Claimed || r.State == Executing)
}

// verdict is what a record that is not open means to a request: an error, unless it is finished.
func (r Record) verdict(fp Fingerprint) (outcome string, err error) {
	switch {
	case r.State != "" && r.Fingerprint != fp:
		return outcomeReused, fault.New(fault.IdempotencyKeyReused, "idempotency.Do", nil)
	case r.finished():
		return outcomeReplayed, nil
	case r.State == Abandoned:
		return outcomeAbandoned, fault.New(fault.IdempotencyAbandoned, "idempotency.Do", fault.Textf("idempotency: the record of scope %s has to be settled", r.Scope))
	}
	return outcomeInProgress, errInProgress(nil)
}

// left is what a caller gets whose context ended while it waited for another's lookup, as if it had asked itself.
func left(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.New(fault.DBStatementTimeout, "idempotency.Do", ctx.Err())
	}
	return ctx.Err()
}
