package memory

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// entry is a record as operators see it. It is called with mu held.
func (d *Records) entry(r *record) idempotency.Entry {
	e := r.Entry
	e.LeaseExpired = !e.Lease.After(d.now())
	return e
}

// Find implements [idempotency.Keeper].
func (d *Records) Find(ctx context.Context, scopes []idempotency.Scope) (idempotency.Entry, bool, error) {
	if err := ctx.Err(); err != nil {
		return idempotency.Entry{}, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.best(scopes)
	if r == nil {
		return idempotency.Entry{}, false, nil
	}
	return d.entry(r), true, nil
}

// Read implements [idempotency.Keeper].
func (d *Records) Read(ctx context.Context, s idempotency.Scope) (idempotency.Record, bool, error) {
	if err := ctx.Err(); err != nil {
		return idempotency.Record{}, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.rows[s]
	if r == nil {
		return idempotency.Record{}, false, nil
	}
	return d.read(r), true, nil
}

func order(a, b idempotency.Cursor) int {
	return cmp.Or(a.Created.Compare(b.Created), bytes.Compare(a.Scope[:], b.Scope[:]))
}

// behind returns up to limit records that fit, in order. It is called with mu held.
func (d *Records) behind(after idempotency.Cursor, limit int, fits func(*record) bool) []*record {
	var found []*record
	for _, r := range d.rows {
		if order(r.Cursor(), after) > 0 && fits(r) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b *record) int { return order(a.Cursor(), b.Cursor()) })
	return found[:min(limit, len(found))]
}

// List implements [idempotency.Keeper].
func (d *Records) List(ctx context.Context, state idempotency.State, after idempotency.Cursor, limit int) ([]idempotency.Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var entries []idempotency.Entry
	for _, r := range d.behind(after, limit, func(r *record) bool { return r.State == state }) {
		entries = append(entries, d.entry(r))
	}
	return entries, nil
}

// Expire implements [idempotency.Keeper].
func (d *Records) Expire(ctx context.Context, limit int) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	late := d.behind(idempotency.Cursor{}, limit, func(r *record) bool { return r.State == idempotency.Executing && !r.Lease.After(d.now()) })
	for _, r := range late {
		d.move(r, idempotency.Abandoned, idempotency.Answer{})
	}
	return len(late), nil
}

// Reap implements [idempotency.Keeper].
func (d *Records) Reap(ctx context.Context, age time.Duration, after idempotency.Cursor, limit int) (deleted int, next idempotency.Cursor, err error) {
	if err := ctx.Err(); err != nil {
		return 0, next, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	seen := d.behind(after, limit, func(r *record) bool { return !r.Created.After(now.Add(-age)) })
	for _, r := range seen {
		ended := r.State == idempotency.Completed || r.State == idempotency.Failed || r.State == idempotency.Claimed && !r.Lease.After(now)
		if ended && !r.Expiry.After(now) && r.holder == nil {
			delete(d.rows, r.Scope)
			deleted++
		}
	}
	if len(seen) == limit {
		next = seen[limit-1].Cursor()
	}
	return deleted, next, nil
}

// Live implements [idempotency.Keeper].
func (d *Records) Live(ctx context.Context, refs []idempotency.Ref) ([]idempotency.Ref, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var live []idempotency.Ref
	for _, ref := range refs {
		scope, operation, err := ref.Split()
		if err != nil {
			return nil, err
		}
		r := d.rows[scope]
		if r != nil && (r.answer.Ref == ref || r.Operation == operation && r.answer.Ref == "" && r.answer.Payload == nil) {
			live = append(live, ref)
		}
	}
	return live, nil
}

// Enroll implements [idempotency.Claims].
func (d *Records) Enroll(ctx context.Context, current string, checks map[string][]byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for version, known := range d.versions {
		if check, ok := checks[version]; !ok || !bytes.Equal(check, known) {
			return fault.Textf("%w: that of version %s", idempotency.ErrOtherSecret, version)
		}
	}
	if _, ok := d.versions[current]; !ok && len(d.versions) > 0 {
		return fault.Textf("%w, and not that of version %s: let all instances accept it first", idempotency.ErrOtherSecret, current)
	}
	maps.Copy(d.versions, checks)
	return nil
}

// Retire implements [idempotency.Keeper].
func (d *Records) Retire(_ context.Context, t *tx.Tx, version string) (bool, error) {
	s, err := sessionOf(t)
	if err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.rows {
		if r.KeyVersion == version {
			return false, nil
		}
	}
	if _, known := d.versions[version]; !known {
		return false, nil
	}
	forget := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.versions, version)
	}
	return true, s.add("memory.Retire", step{forget, func() {}})
}

// Reconcile implements [idempotency.Keeper].
func (d *Records) Reconcile(_ context.Context, t *tx.Tx, c idempotency.Claim, to idempotency.State, a idempotency.Answer) error {
	s, err := sessionOf(t)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.held("memory.Reconcile", c, s, idempotency.Abandoned)
	if err != nil {
		return err
	}
	a.Payload = bytes.Clone(a.Payload)
	return d.finish("memory.Reconcile", r, s, func() {
		if to == "" {
			delete(d.rows, c.Scope)
			return
		}
		d.move(r, to, a)
	})
}
