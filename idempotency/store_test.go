package idempotency_test

import (
	"context"
	"sync"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// store is the smallest driver that keeps the interface's promises, with a tx driver of its own: what is written in a transaction
// shows at its commit.
type store struct {
	mu        sync.Mutex
	rows      map[idempotency.Scope]idempotency.Record
	locked    map[idempotency.Scope]bool
	expired   bool   // every lease has expired
	vanish    int    // how many more claims find a record that is gone by the second look
	commitErr error  // of each commit from now on
	failErr   error  // of each Fail
	check     string // version and check value that were enrolled
	lostAt    string // the call before which another owner takes the record
	calls     []string
}

func newStore() *store {
	return &store{rows: map[idempotency.Scope]idempotency.Record{}, locked: map[idempotency.Scope]bool{}}
}

func (s *store) did(call string) { s.calls = append(s.calls, call) }

func (s *store) Claim(_ context.Context, r idempotency.Request) (idempotency.Record, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("claim")
	if s.vanish > 0 {
		s.vanish--
		return idempotency.Record{}, false, nil
	}
	if rec, ok := s.rows[r.Scope]; ok {
		rec.LeaseExpired = s.expired
		return rec, false, nil
	}
	rec := idempotency.Record{Claim: idempotency.Claim{Scope: r.Scope, Owner: r.Owner, Attempt: 1, Operation: r.Operation, Revision: 1}, State: idempotency.Claimed, Fingerprint: r.Fingerprint}
	s.rows[r.Scope] = rec
	return rec, true, nil
}

func (s *store) TakeOver(_ context.Context, held idempotency.Claim, r idempotency.Request) (idempotency.Claim, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("take over")
	rec, ok := s.rows[r.Scope]
	if !ok || rec.Claim != held || rec.State != idempotency.Claimed || !s.expired || s.locked[r.Scope] {
		return idempotency.Claim{}, false, nil
	}
	rec.Claim = idempotency.Claim{Scope: r.Scope, Owner: r.Owner, Attempt: held.Attempt + 1, Operation: r.Operation, Revision: held.Revision + 1}
	s.rows[r.Scope] = rec
	return rec.Claim, true, nil
}

// takeAway gives the record to another owner, if this is the call that is to find it gone.
func (s *store) takeAway(call string, scope idempotency.Scope) {
	if call != s.lostAt {
		return
	}
	rec := s.rows[scope]
	rec.Owner, rec.Attempt, rec.Revision = "another", rec.Attempt+1, rec.Revision+1
	s.rows[scope] = rec
}

// holds returns the row if it is still c's.
func (s *store) holds(c idempotency.Claim) error {
	if rec, ok := s.rows[c.Scope]; !ok || rec.Claim != c || rec.State != idempotency.Claimed {
		return idempotency.ErrStale
	}
	return nil
}

func (s *store) answer(c idempotency.Claim, state idempotency.State, payload []byte) {
	rec := s.rows[c.Scope]
	rec.State, rec.Payload = state, payload
	rec.Revision++
	s.rows[c.Scope] = rec
}

func (s *store) Start(_ context.Context, t *tx.Tx, c idempotency.Claim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("start")
	s.takeAway("start", c.Scope)
	if err := s.holds(c); err != nil {
		return err
	}
	s.locked[c.Scope] = true
	conn, err := tx.Unwrap(t)
	conn.(*transaction).scope = c.Scope
	return err
}

func (s *store) Complete(_ context.Context, t *tx.Tx, c idempotency.Claim, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("complete")
	s.takeAway("complete", c.Scope)
	if err := s.holds(c); err != nil {
		return err
	}
	conn, err := tx.Unwrap(t)
	conn.(*transaction).onCommit = func() { s.answer(c, idempotency.Completed, payload) }
	return err
}

func (s *store) Fail(_ context.Context, c idempotency.Claim, payload []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("fail")
	s.takeAway("fail", c.Scope)
	if s.failErr != nil {
		return s.failErr
	}
	if err := s.holds(c); err != nil {
		return err
	}
	s.answer(c, idempotency.Failed, payload)
	return nil
}

func (s *store) Enroll(_ context.Context, version string, check []byte) error {
	enrolled := version + " " + string(check)
	if s.check != "" && s.check != enrolled {
		return idempotency.ErrOtherSecret
	}
	s.check = enrolled
	return nil
}

func (s *store) Release(ctx context.Context, c idempotency.Claim) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("release")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := s.holds(c); err != nil {
		return err
	}
	delete(s.rows, c.Scope)
	return nil
}

func (s *store) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("begin")
	return &transaction{store: s}, nil
}

type transaction struct {
	store    *store
	scope    idempotency.Scope
	onCommit func()
}

func (c *transaction) Commit(context.Context) error {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.store.did("commit")
	delete(c.store.locked, c.scope)
	if c.store.commitErr == nil && c.onCommit != nil {
		c.onCommit()
	}
	return c.store.commitErr
}

func (c *transaction) Rollback(context.Context) error {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	c.store.did("rollback")
	delete(c.store.locked, c.scope)
	return nil
}

func (*transaction) Savepoint(context.Context, string, bool) error { return nil }
func (*transaction) Release(context.Context, string) error         { return nil }
func (*transaction) RollbackTo(context.Context, string) error      { return nil }
