package idempotency_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// store is the smallest driver that keeps the interface's promises, with a tx driver of its own: what is written in a transaction
// shows at its commit.
type store struct {
	idempotency.Keeper // what is not here, no test asks for

	mu          sync.Mutex
	rows        map[idempotency.Scope]idempotency.Record
	locked      map[idempotency.Scope]bool
	expired     bool           // every lease has expired
	vanish      int            // how many more claims find a record that is gone by the second look
	commitErr   error          // of each commit from now on
	failErr     error          // of each call that fails
	failing     map[string]int // how often calls fail
	lostAnswers bool           // they take effect nevertheless
	check       string         // version and check value that were enrolled
	lostAt      string         // the call before which another owner takes the record
	calls       []string
}

func newStore() *store {
	return &store{rows: map[idempotency.Scope]idempotency.Record{}, locked: map[idempotency.Scope]bool{}, failing: map[string]int{}}
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
	for _, scope := range append([]idempotency.Scope{r.Scope}, r.Former...) {
		if rec, ok := s.rows[scope]; ok {
			rec.LeaseExpired = s.expired
			return rec, false, nil
		}
	}
	rec := idempotency.Record{Claim: idempotency.Claim{Scope: r.Scope, Owner: r.Owner, Attempt: 1, Operation: r.Operation, Revision: 1}, State: idempotency.Claimed, Fingerprint: r.Fingerprint}
	s.rows[r.Scope] = rec
	return rec, true, nil
}

func (s *store) TakeOver(_ context.Context, held idempotency.Claim, r idempotency.Request) (idempotency.Claim, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("take over")
	rec, ok := s.rows[held.Scope]
	if !ok || rec.Claim != held || rec.State != idempotency.Claimed || !s.expired || s.locked[held.Scope] {
		return idempotency.Claim{}, false, nil
	}
	rec.Claim = idempotency.Claim{Scope: held.Scope, Owner: r.Owner, Attempt: held.Attempt + 1, Operation: r.Operation, Revision: held.Revision + 1}
	s.rows[held.Scope] = rec
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

func (s *store) answer(c idempotency.Claim, state idempotency.State, a idempotency.Answer) {
	rec := s.rows[c.Scope]
	rec.State, rec.Answer = state, a
	rec.Revision++
	s.rows[c.Scope] = rec
}

func (s *store) Start(_ context.Context, t *tx.Tx, c idempotency.Claim, others []idempotency.Scope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("start")
	s.takeAway("start", c.Scope)
	if err := s.holds(c); err != nil {
		return err
	}
	for _, o := range others {
		if _, ok := s.rows[o]; ok {
			return idempotency.ErrRival
		}
	}
	s.locked[c.Scope] = true
	conn, err := tx.Unwrap(t)
	conn.(*transaction).scope = c.Scope
	return err
}

func (s *store) Complete(_ context.Context, t *tx.Tx, c idempotency.Claim, a idempotency.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("complete")
	s.takeAway("complete", c.Scope)
	if err := s.holds(c); err != nil {
		return err
	}
	conn, err := tx.Unwrap(t)
	conn.(*transaction).onCommit = func() { s.answer(c, idempotency.Completed, a) }
	return err
}

func (s *store) Settle(ctx context.Context, c idempotency.Claim, from, to idempotency.State, a idempotency.Answer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := map[idempotency.State]string{"": "release", idempotency.Failed: "fail", idempotency.Completed: "finish", idempotency.Abandoned: "abandon"}[to]
	s.did(call)
	s.takeAway(call, c.Scope)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	rec, ok := s.rows[c.Scope]
	held := ok && rec.Claim == c && rec.State == from
	if s.failing[call] > 0 {
		s.failing[call]--
		if s.lostAnswers && held {
			s.answer(c, to, a)
		}
		return s.failErr
	}
	if !held {
		return idempotency.ErrStale
	}
	if to == "" {
		delete(s.rows, c.Scope)
		return nil
	}
	s.answer(c, to, a)
	return nil
}

func (s *store) Execute(_ context.Context, c idempotency.Claim, _ time.Duration, others []idempotency.Scope) (idempotency.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("execute")
	s.takeAway("execute", c.Scope)
	for _, o := range others {
		if _, ok := s.rows[o]; ok {
			return idempotency.Claim{}, idempotency.ErrRival
		}
	}
	lost := s.failing["execute"] > 0
	if lost {
		s.failing["execute"]--
		if !s.lostAnswers {
			return idempotency.Claim{}, s.failErr
		}
	}
	if err := s.holds(c); err != nil {
		return idempotency.Claim{}, err
	}
	s.answer(c, idempotency.Executing, idempotency.Answer{})
	if lost {
		return idempotency.Claim{}, s.failErr
	}
	return s.rows[c.Scope].Claim, nil
}

func (s *store) Renew(_ context.Context, c idempotency.Claim, lease time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("renew " + lease.String())
	if rec := s.rows[c.Scope]; rec.Claim != c || rec.State != idempotency.Executing {
		return idempotency.ErrStale
	}
	return nil
}

func (s *store) Abandon(_ context.Context, c idempotency.Claim) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did("abandon expired")
	if rec := s.rows[c.Scope]; !s.expired || rec.Claim != c || rec.State != idempotency.Executing {
		return false, nil
	}
	s.answer(c, idempotency.Abandoned, idempotency.Answer{})
	return true, nil
}

func (s *store) Find(_ context.Context, scopes []idempotency.Scope) (idempotency.Entry, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, scope := range scopes {
		if rec, ok := s.rows[scope]; ok {
			return idempotency.Entry{Claim: rec.Claim, State: rec.State}, true, nil
		}
	}
	return idempotency.Entry{}, false, nil
}

func (s *store) Enroll(_ context.Context, current string, checks map[string][]byte) error {
	enrolled := fmt.Sprintf("%s %x", current, checks)
	if s.check != "" && s.check != enrolled {
		return idempotency.ErrOtherSecret
	}
	s.check = enrolled
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
