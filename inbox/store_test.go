package inbox_test

import (
	"context"
	"errors"
	"sync"

	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

type row struct {
	state    string
	attempts int
	message  inbox.Message
	reason   string
}

// store is the smallest driver that keeps the interface's promises, with a tx driver of its own. Who finds a message open in another
// transaction gets DB_LOCK_TIMEOUT at once.
type store struct {
	mu    sync.Mutex
	rows  map[string]row
	open  map[string]bool
	calls []string

	onBegin   func()           // called once
	fail      map[string]error // by call
	commitErr error            // what COMMIT is answered with
	committed bool             // whether it took effect all the same
}

func newStore() *store {
	return &store{rows: map[string]row{}, open: map[string]bool{}, fail: map[string]error{}}
}

func (s *store) did(ctx context.Context, call string) error {
	s.calls = append(s.calls, call)
	return errors.Join(ctx.Err(), s.fail[call])
}

func (s *store) Claim(ctx context.Context, t *tx.Tx, consumer, id string) (inbox.Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.did(ctx, "claim"); err != nil {
		return 0, err
	}
	key := consumer + "/" + id
	r := s.rows[key]
	switch {
	case s.open[key]:
		return 0, fault.New(fault.DBLockTimeout, "store.Claim", nil)
	case r.state == "COMPLETED":
		return inbox.Done, nil
	case r.state == "RECOVERY_REQUIRED":
		return inbox.Settling, nil
	}
	conn, err := tx.Unwrap(t)
	if err != nil {
		return 0, err
	}
	s.open[key] = true
	conn.(*transaction).key = key
	if r.state == "" {
		return inbox.Fresh, nil
	}
	return inbox.Retried, nil
}

func (s *store) Attempt(ctx context.Context, consumer, id string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.did(ctx, "attempt"); err != nil {
		return 0, err
	}
	key := consumer + "/" + id
	r := s.rows[key]
	switch {
	case s.open[key]:
		return 0, fault.New(fault.DBLockTimeout, "store.Attempt", nil)
	case r.state == "COMPLETED", r.state == "RECOVERY_REQUIRED":
		return 0, nil
	}
	s.rows[key] = row{state: "RECEIVED", attempts: r.attempts + 1}
	return r.attempts + 1, nil
}

func (s *store) Park(ctx context.Context, consumer string, m inbox.Message, attempts int, reason string) (inbox.Verdict, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.did(ctx, "park"); err != nil {
		return 0, err
	}
	key := consumer + "/" + m.ID
	switch {
	case s.open[key]:
		return 0, fault.New(fault.DBLockTimeout, "store.Park", nil)
	case s.rows[key].state == "COMPLETED":
		return inbox.Done, nil
	case s.rows[key].state == "RECOVERY_REQUIRED":
		return inbox.Settling, nil
	}
	s.rows[key] = row{"RECOVERY_REQUIRED", attempts, m, reason}
	return inbox.Fresh, nil
}

func (s *store) Begin(ctx context.Context, _ tx.BeginOptions) (tx.Conn, error) {
	if hook := s.onBegin; hook != nil {
		s.onBegin = nil
		hook()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.did(ctx, "begin"); err != nil {
		return nil, err
	}
	return &transaction{store: s}, nil
}

type transaction struct {
	store *store
	key   string
}

func (c *transaction) Commit(ctx context.Context) error {
	s := c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.did(ctx, "commit")
	delete(s.open, c.key)
	if c.key != "" && (s.commitErr == nil || s.committed) {
		s.rows[c.key] = row{state: "COMPLETED", attempts: s.rows[c.key].attempts}
	}
	return s.commitErr
}

func (c *transaction) Rollback(ctx context.Context) error {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	_ = c.store.did(ctx, "rollback")
	delete(c.store.open, c.key)
	return nil
}

func (*transaction) Savepoint(context.Context, string, bool) error { return nil }
func (*transaction) Release(context.Context, string) error         { return nil }
func (*transaction) RollbackTo(context.Context, string) error      { return nil }
