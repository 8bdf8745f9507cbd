package idempotencytest_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/idempotency/idempotencytest"
	"caskeleton.dev/tx"
)

// broken is a driver that keeps its promises, but for one bug.
type broken struct {
	*memory.Records

	bug   string
	ahead *atomic.Int64 // of the clock

	mu           sync.Mutex
	fingerprints map[idempotency.Scope]idempotency.Fingerprint
	open         map[idempotency.Scope]chan struct{} // transactions
	racers       int
	all          chan struct{}
}

// newStore returns a store with the bug, "" for none.
func newStore(t *testing.T, bug string) idempotencytest.Store {
	t.Helper()
	b := &broken{bug: bug, ahead: &atomic.Int64{}, fingerprints: map[idempotency.Scope]idempotency.Fingerprint{}, all: make(chan struct{})}
	b.Records = memory.NewRecords(&memory.RecordsOptions{Now: func() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }})
	runner, err := tx.NewRunner(memory.Transactions{}, nil)
	require.NoError(t, err)
	return idempotencytest.Store{Driver: b, Runner: runner, Pass: func(_ context.Context, d time.Duration) error {
		b.ahead.Add(int64(d))
		return nil
	}}
}

// later runs fn with a clock that is ahead.
func (b *broken) later(fn func()) {
	b.ahead.Add(int64(1000 * time.Hour))
	fn()
	b.ahead.Add(-int64(1000 * time.Hour))
}

// own returns the claim that the record has, for a bug that looks at less than all of c.
func (b *broken) own(ctx context.Context, c idempotency.Claim) (idempotency.Claim, idempotency.State) {
	e, found, err := b.Find(ctx, []idempotency.Scope{c.Scope})
	if err != nil || !found {
		return c, ""
	}
	switch now := e.Claim; b.bug {
	case "ignores the owner":
		c.Owner = now.Owner
	case "ignores the attempt":
		c.Attempt = now.Attempt
	case "ignores the operation":
		c.Operation = now.Operation
	case "ignores the revision":
		c.Revision = now.Revision
	case "takes over whatever was read":
		c = now
	}
	return c, e.State
}

func (b *broken) Claim(ctx context.Context, q idempotency.Request) (idempotency.Record, bool, error) {
	switch b.bug {
	case "a claim fails":
		return idempotency.Record{}, false, fault.New(fault.DBUnavailable, "memory.Claim", nil)
	case "knows the current version only":
		q.Former = nil
	case "checks and then writes":
		if rec, made, err := b.race(ctx, q); made {
			return rec, made, err
		}
	case "a claim waits for a running transaction":
		b.mu.Lock()
		wait := b.open[q.Scope]
		b.mu.Unlock()
		if wait != nil {
			select {
			case <-wait:
			case <-ctx.Done():
				return idempotency.Record{}, false, ctx.Err()
			}
		}
	case "forgets the fingerprint":
		rec, made, err := b.Records.Claim(ctx, q)
		if !made {
			rec.Fingerprint = idempotency.Fingerprint{}
		}
		return rec, made, err
	}
	rec, made, err := b.Records.Claim(ctx, q)
	switch b.bug {
	case "makes a claim twice":
		made = true
	case "no bytes are no answer":
		if len(rec.Payload) == 0 {
			rec.Payload = nil
		}
	case "prefers claims":
		if other, _, err := b.Records.Claim(ctx, idempotency.Request{Scope: q.Scope}); err == nil && other.State == idempotency.Claimed && !made {
			rec = other
		}
	}
	return rec, made, err
}

// race has two callers find nothing before either writes.
func (b *broken) race(ctx context.Context, q idempotency.Request) (idempotency.Record, bool, error) {
	if _, found, _ := b.Find(ctx, []idempotency.Scope{q.Scope}); found {
		return idempotency.Record{}, false, nil
	}
	b.mu.Lock()
	if b.racers++; b.racers == 5 { // three keys are claimed by one caller each, before
		close(b.all)
	}
	b.mu.Unlock()
	select {
	case <-b.all:
	case <-time.After(50 * time.Millisecond):
	}
	c := idempotency.Claim{Scope: q.Scope, Owner: q.Owner, Attempt: 1, Operation: q.Operation, Revision: 1}
	_, _, err := b.Records.Claim(ctx, q)
	return idempotency.Record{Claim: c, State: idempotency.Claimed, Fingerprint: q.Fingerprint}, true, err
}

func (b *broken) TakeOver(ctx context.Context, held idempotency.Claim, q idempotency.Request) (c idempotency.Claim, taken bool, err error) {
	held, state := b.own(ctx, held)
	switch b.bug {
	case "never takes over":
		return c, false, nil
	case "a take-over keeps the lease":
		q.Lease = 0
	case "takes over before the lease has expired":
		b.later(func() { c, taken, err = b.Records.TakeOver(ctx, held, q) })
		return c, taken, err
	}
	c, taken, err = b.Records.TakeOver(ctx, held, q)
	switch {
	case b.bug == "takes over from a running transaction" && !taken && state == idempotency.Claimed:
		return held, true, nil
	case b.bug == "a take-over goes to the current version":
		c.Scope = q.Scope
	}
	return c, taken, err
}

func (b *broken) Start(ctx context.Context, t *tx.Tx, c idempotency.Claim, others []idempotency.Scope) error {
	if b.bug == "starts beside another version" {
		others = nil
	}
	if b.bug == "a claim waits for a running transaction" {
		b.mu.Lock()
		b.open = map[idempotency.Scope]chan struct{}{c.Scope: make(chan struct{})}
		b.mu.Unlock()
	}
	if b.bug == "completes at once" {
		return nil
	}
	c, _ = b.own(ctx, c)
	return b.told(b.Records.Start(ctx, t, c, others))
}

// told is what an owner hears.
func (b *broken) told(err error) error {
	if b.bug == "says nothing to a stale owner" && errors.Is(err, idempotency.ErrStale) {
		return nil
	}
	return err
}

func (b *broken) Complete(ctx context.Context, t *tx.Tx, c idempotency.Claim, a idempotency.Answer) error {
	switch b.bug {
	case "completes at once":
		return b.apart(ctx, func(ctx context.Context, t *tx.Tx) error { return b.Records.Complete(ctx, t, c, a) })
	case "forgets to complete":
		return b.Records.Start(ctx, t, c, nil)
	case "completes twice":
		if err := b.Records.Complete(ctx, t, c, a); !errors.Is(err, idempotency.ErrStale) {
			return err
		}
		return nil
	}
	c, _ = b.own(ctx, c)
	return b.told(b.Records.Complete(ctx, t, c, b.kept(a)))
}

// kept is the answer that is stored.
func (b *broken) kept(a idempotency.Answer) idempotency.Answer {
	switch b.bug {
	case "truncates":
		a.Payload = bytes.Clone(a.Payload[:min(len(a.Payload), 8<<10)])
	case "drops refs":
		a.Ref = ""
	}
	return a
}

func (b *broken) Execute(ctx context.Context, c idempotency.Claim, lease time.Duration, others []idempotency.Scope) (idempotency.Claim, error) {
	if b.bug == "executes beside another version" {
		others = nil
	}
	c, state := b.own(ctx, c)
	if b.bug == "executes again" && state == idempotency.Executing {
		return c, nil
	}
	now, err := b.Records.Execute(ctx, c, lease, others)
	return now, b.told(err)
}

func (b *broken) Renew(ctx context.Context, c idempotency.Claim, lease time.Duration) error {
	c, state := b.own(ctx, c)
	switch {
	case b.bug == "renews a claim" && state == idempotency.Claimed:
		return nil
	case b.bug == "renews nothing":
		lease = 0
	case b.bug == "a renewal is refused after its time":
		if e, _, err := b.Find(ctx, []idempotency.Scope{c.Scope}); err != nil || e.LeaseExpired {
			return idempotency.ErrStale
		}
	}
	return b.told(b.Records.Renew(ctx, c, lease))
}

func (b *broken) Settle(ctx context.Context, c idempotency.Claim, from, to idempotency.State, a idempotency.Answer) error {
	c, state := b.own(ctx, c)
	switch {
	case b.bug == "a release keeps the record" && to == "":
		return nil
	case b.bug == "keeps no late answer" && to == idempotency.Completed:
		if e, found, err := b.Find(ctx, []idempotency.Scope{c.Scope}); err == nil && found && e.Created.Add(time.Hour).Before(time.Now().Add(time.Duration(b.ahead.Load()))) {
			b.ahead.Add(-int64(time.Hour)) // it is stored as it would have been then
			defer b.ahead.Add(int64(time.Hour))
		}
	case b.bug == "settles from any state" && (state == idempotency.Executing || state == idempotency.Abandoned):
		from = state
	}
	return b.told(b.Records.Settle(ctx, c, from, to, b.kept(a)))
}

func (b *broken) Abandon(ctx context.Context, c idempotency.Claim) (marked bool, err error) {
	c, _ = b.own(ctx, c)
	switch b.bug {
	case "never abandons":
		return false, nil
	case "abandons early":
		b.later(func() { marked, err = b.Records.Abandon(ctx, c) })
		return marked, err
	}
	return b.Records.Abandon(ctx, c)
}

func (b *broken) Expire(ctx context.Context, limit int) (int, error) {
	switch b.bug {
	case "expires without a limit":
		limit = 1000
	case "finds claims interrupted":
		late, err := b.List(ctx, idempotency.Claimed, idempotency.Cursor{}, limit)
		return len(late), err
	}
	return b.Records.Expire(ctx, limit)
}

func (b *broken) Reap(ctx context.Context, age time.Duration, after idempotency.Cursor, limit int) (n int, next idempotency.Cursor, err error) {
	switch b.bug {
	case "reaps nothing":
		return 0, next, nil
	case "reaps whatever the age":
		age = 0
	case "reaps from the beginning":
		after = idempotency.Cursor{}
	case "reaps early":
		b.later(func() { n, next, err = b.Records.Reap(ctx, 0, after, limit) })
		return n, next, err
	case "reaps executions":
		late, err := b.List(ctx, idempotency.Abandoned, idempotency.Cursor{}, limit)
		if err != nil {
			return 0, next, err
		}
		for _, e := range late {
			if e.LeaseExpired && b.Records.Settle(ctx, e.Claim, idempotency.Abandoned, "", idempotency.Answer{}) == nil {
				n++
			}
		}
	case "reaps claims whose lease has not expired":
		live, err := b.List(ctx, idempotency.Claimed, idempotency.Cursor{}, limit)
		if err != nil {
			return 0, next, err
		}
		for _, e := range live {
			if e.Created.Add(2*time.Hour).Before(time.Now().Add(time.Duration(b.ahead.Load()))) || e.LeaseExpired {
				continue
			}
			if e.Lease.Sub(e.Created) > time.Hour && b.Records.Settle(ctx, e.Claim, idempotency.Claimed, "", idempotency.Answer{}) == nil {
				n++
			}
		}
	case "reaps beside a running transaction":
		e, err := b.List(ctx, idempotency.Claimed, idempotency.Cursor{}, limit)
		if err == nil && len(e) == 1 && e[0].LeaseExpired {
			return 1, next, nil
		}
	}
	more, next, err := b.Records.Reap(ctx, age, after, limit)
	return n + more, next, err
}

func (b *broken) Live(ctx context.Context, refs []idempotency.Ref) ([]idempotency.Ref, error) {
	switch b.bug {
	case "any object of a record lives":
		var live []idempotency.Ref
		for _, r := range refs {
			scope, _, err := r.Split()
			if err != nil {
				return nil, err
			}
			if _, found, _ := b.Find(ctx, []idempotency.Scope{scope}); found {
				live = append(live, r)
			}
		}
		return live, nil
	case "what an execution may write is no object":
		live, err := b.Records.Live(ctx, refs)
		return live[len(live)-1:], err
	}
	return b.Records.Live(ctx, refs)
}

func (b *broken) Find(ctx context.Context, scopes []idempotency.Scope) (idempotency.Entry, bool, error) {
	if b.bug == "finds nothing" && len(scopes) == 2 {
		return idempotency.Entry{}, false, nil
	}
	return b.Records.Find(ctx, scopes)
}

func (b *broken) Read(ctx context.Context, s idempotency.Scope) (idempotency.Record, bool, error) {
	rec, found, err := b.Records.Read(ctx, s)
	if b.bug == "reads no large answer" && string(rec.Payload) == "large" {
		rec.Payload = nil
	}
	return rec, found || b.bug == "reads what is not there", err
}

func (b *broken) List(ctx context.Context, state idempotency.State, after idempotency.Cursor, limit int) ([]idempotency.Entry, error) {
	switch b.bug {
	case "lists from the beginning":
		after = idempotency.Cursor{}
	case "lists any state":
		if state == idempotency.Executing {
			state = idempotency.Abandoned
		}
	}
	return b.Records.List(ctx, state, after, limit)
}

func (b *broken) Enroll(ctx context.Context, current string, checks map[string][]byte) error {
	err := b.Records.Enroll(ctx, current, checks)
	switch {
	case b.bug == "any secret will do", b.bug == "a new version may claim" && len(checks) == 2, b.bug == "an enrolled version need not be known" && len(checks) == 1 && current == "a" && checks["a"][0] == 1:
		return nil
	}
	return err
}

func (b *broken) Retire(ctx context.Context, t *tx.Tx, version string) (done bool, err error) {
	if b.bug == "retires at once" {
		err = b.apart(ctx, func(ctx context.Context, t *tx.Tx) error {
			done, err = b.Records.Retire(ctx, t, version)
			return err
		})
		return done, err
	}
	done, err = b.Records.Retire(ctx, t, version)
	return done || b.bug == "retires what is in use", err
}

func (b *broken) Reconcile(ctx context.Context, t *tx.Tx, c idempotency.Claim, to idempotency.State, a idempotency.Answer) error {
	c, state := b.own(ctx, c)
	switch {
	case b.bug == "reconciles at once":
		return b.apart(ctx, func(ctx context.Context, t *tx.Tx) error { return b.Records.Reconcile(ctx, t, c, to, a) })
	case b.bug == "reconciles nothing" && state == idempotency.Abandoned:
		return nil
	case b.bug == "reconciles from any state" && state == idempotency.Executing:
		return b.Records.Settle(ctx, c, state, to, a)
	case b.bug == "reconciles without the answer":
		a.Payload = []byte{}
	}
	return b.told(b.Records.Reconcile(ctx, t, c, to, b.kept(a)))
}

// apart runs fn in a transaction of its own.
func (b *broken) apart(ctx context.Context, fn func(ctx context.Context, t *tx.Tx) error) error {
	other, err := tx.NewRunner(memory.Transactions{}, nil)
	if err != nil {
		return err
	}
	return other.InNew(ctx, fn)
}
