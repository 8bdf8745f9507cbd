package memory

import (
	"bytes"
	"context"
	"sync"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// RecordsOptions configure [Records]. The zero value is the default.
type RecordsOptions struct {
	Now func() time.Time // the clock of leases and expiry; nil means time.Now
}

// Records is an [idempotency.Driver] that keeps records in this process, for transactions of [Transactions]. Who meets a record that is locked by
// a transaction gets DB_LOCK_TIMEOUT at once. Safe for concurrent use.
type Records struct {
	now func() time.Time

	mu       sync.Mutex
	rows     map[idempotency.Scope]*record
	versions map[string][]byte // check values
}

// record is a row; others see it as it was before the transaction that holds it.
type record struct {
	idempotency.Entry

	fingerprint idempotency.Fingerprint
	answer      idempotency.Answer
	holder      *session // the transaction that has it locked
	ending      bool     // the holder has completed it
}

// NewRecords returns a driver that has no records.
func NewRecords(o *RecordsOptions) *Records {
	d := &Records{now: time.Now, rows: map[idempotency.Scope]*record{}, versions: map[string][]byte{}}
	if o != nil && o.Now != nil {
		d.now = o.Now
	}
	return d
}

// read returns a record as others see it. It is called with mu held.
func (d *Records) read(r *record) idempotency.Record {
	a := r.answer
	a.Payload = bytes.Clone(a.Payload)
	a.Large = false
	return idempotency.Record{Claim: r.Claim, Answer: a, State: r.State, Fingerprint: r.fingerprint, LeaseExpired: !r.Lease.After(d.now())}
}

// best returns the record of one of scopes, of several one that cannot be taken over. It is called with mu held.
func (d *Records) best(scopes []idempotency.Scope) (found *record) {
	for _, s := range scopes {
		r, ok := d.rows[s]
		if ok && (found == nil || found.State == idempotency.Claimed && (r.State != idempotency.Claimed || r.Created.Before(found.Created))) {
			found = r
		}
	}
	return found
}

// Claim implements [idempotency.Claims].
func (d *Records) Claim(ctx context.Context, q idempotency.Request) (idempotency.Record, bool, error) {
	if err := ctx.Err(); err != nil {
		return idempotency.Record{}, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.best(append([]idempotency.Scope{q.Scope}, q.Former...)); r != nil {
		return d.read(r), false, nil
	}
	now := d.now()
	r := &record{
		Entry: idempotency.Entry{
			Claim: idempotency.Claim{Scope: q.Scope, Owner: q.Owner, Attempt: 1, Operation: q.Operation, Revision: 1},
			State: idempotency.Claimed, KeyVersion: q.KeyVersion, Tenant: q.Tenant, Route: q.Route,
			Lease: now.Add(q.Lease), Expiry: now.Add(q.Expiry), Created: now, Updated: now,
		},
		fingerprint: q.Fingerprint,
	}
	d.rows[q.Scope] = r
	return d.read(r), true, nil
}

// TakeOver implements [idempotency.Claims].
func (d *Records) TakeOver(ctx context.Context, held idempotency.Claim, q idempotency.Request) (idempotency.Claim, bool, error) {
	if err := ctx.Err(); err != nil {
		return idempotency.Claim{}, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rows[held.Scope]
	now := d.now()
	if r == nil || r.Claim != held || r.State != idempotency.Claimed || r.holder != nil || r.Lease.After(now) {
		return idempotency.Claim{}, false, nil
	}
	r.Owner, r.Attempt, r.Operation, r.Revision = q.Owner, r.Attempt+1, q.Operation, r.Revision+1
	r.Lease, r.Expiry, r.Updated = now.Add(q.Lease), now.Add(q.Expiry), now
	return r.Claim, true, nil
}

// held returns the record of c in one of states, for s, nil for none; it must not be locked by another one. It is called with mu held.
func (d *Records) held(op string, c idempotency.Claim, s *session, state idempotency.State) (*record, error) {
	r := d.rows[c.Scope]
	switch {
	case r == nil || r.Claim != c || r.State != state, s != nil && r.holder == s && r.ending:
		return nil, idempotency.ErrStale
	case r.holder != nil && r.holder != s:
		err := fault.New(fault.DBLockTimeout, op, nil)
		if s != nil {
			return nil, s.fail(err)
		}
		return nil, err
	}
	return r, nil
}

// rival reports whether one of scopes has a record. It is called with mu held.
func (d *Records) rival(scopes []idempotency.Scope) bool { return d.best(scopes) != nil }

// lock has s hold r until its end. It is called with mu held.
func (d *Records) lock(op string, r *record, s *session) error {
	if r.holder == s {
		return nil
	}
	free := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if !r.ending { // else the step of its end frees it, so that nobody locks it in between
			r.holder = nil
		}
	}
	if err := s.add(op, step{free, free}); err != nil {
		return err
	}
	r.holder = s
	return nil
}

// Start implements [idempotency.Claims].
func (d *Records) Start(_ context.Context, t *tx.Tx, c idempotency.Claim, others []idempotency.Scope) error {
	s, err := sessionOf(t)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.held("memory.Start", c, s, idempotency.Claimed)
	if err != nil {
		return err
	}
	if err := d.lock("memory.Start", r, s); err != nil {
		return err
	}
	if d.rival(others) {
		return idempotency.ErrRival
	}
	return nil
}

// Complete implements [idempotency.Claims].
func (d *Records) Complete(_ context.Context, t *tx.Tx, c idempotency.Claim, a idempotency.Answer) error {
	s, err := sessionOf(t)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.held("memory.Complete", c, s, idempotency.Claimed)
	if err != nil {
		return err
	}
	a.Payload = bytes.Clone(a.Payload)
	return d.finish("memory.Complete", r, s, func() { d.move(r, idempotency.Completed, a) })
}

// finish has s hold r until its end, and end be done when it commits. Both are called with mu held.
func (d *Records) finish(op string, r *record, s *session, end func()) error {
	if err := d.lock(op, r, s); err != nil {
		return err
	}
	commit := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		r.ending, r.holder = false, nil
		end()
	}
	undo := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		r.ending = false
	}
	if err := s.add(op, step{commit, undo}); err != nil {
		return err
	}
	r.ending = true
	return nil
}

// move changes the state. An answer stays as long, from now on, as it was to from the claim on. It is called with mu held.
func (d *Records) move(r *record, to idempotency.State, a idempotency.Answer) {
	r.State, r.answer, r.Updated = to, a, d.now()
	r.Revision++
	if to == idempotency.Completed || to == idempotency.Failed {
		r.Expiry = r.Updated.Add(r.Expiry.Sub(r.Created))
	}
}

// Execute implements [idempotency.Claims].
func (d *Records) Execute(ctx context.Context, c idempotency.Claim, lease time.Duration, others []idempotency.Scope) (idempotency.Claim, error) {
	if err := ctx.Err(); err != nil {
		return idempotency.Claim{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.held("memory.Execute", c, nil, idempotency.Claimed)
	switch {
	case d.rival(others):
		return idempotency.Claim{}, idempotency.ErrRival
	case err != nil:
		return idempotency.Claim{}, err
	}
	d.move(r, idempotency.Executing, idempotency.Answer{})
	r.Lease = r.Updated.Add(lease)
	return r.Claim, nil
}

// Renew implements [idempotency.Claims].
func (d *Records) Renew(ctx context.Context, c idempotency.Claim, lease time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.held("memory.Renew", c, nil, idempotency.Executing)
	if err != nil {
		return err
	}
	r.Updated = d.now()
	r.Lease = r.Updated.Add(lease)
	return nil
}

// Abandon implements [idempotency.Claims].
func (d *Records) Abandon(ctx context.Context, c idempotency.Claim) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.held("memory.Abandon", c, nil, idempotency.Executing)
	if err != nil || r.Lease.After(d.now()) {
		return false, nil // it is not that any more
	}
	d.move(r, idempotency.Abandoned, idempotency.Answer{})
	return true, nil
}

// Settle implements [idempotency.Claims].
func (d *Records) Settle(ctx context.Context, c idempotency.Claim, from, to idempotency.State, a idempotency.Answer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.held("memory.Settle", c, nil, from)
	if err != nil {
		return err
	}
	if to == "" {
		delete(d.rows, c.Scope)
		return nil
	}
	a.Payload = bytes.Clone(a.Payload)
	d.move(r, to, a)
	return nil
}
