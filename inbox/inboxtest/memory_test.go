package inboxtest_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/inbox/inboxtest"
	"caskeleton.dev/tx"
)

// memory is a driver of the inbox and of transactions: the smallest that keeps the promises, but for one bug at a time. Who meets a
// message that is open in another transaction is busy at once.
type memory struct {
	bug      string
	mu       sync.Mutex
	messages map[string]message
	open     map[string]bool
	current  *session // the last transaction that began
}

type message struct {
	state    inbox.Verdict // Fresh, Retried, Done or Settling
	attempts int
}

func newMemory(bug string) *memory {
	return &memory{bug: bug, messages: map[string]message{}, open: map[string]bool{}}
}

// newStore returns a memory with the bug, "" for none.
func newStore(t *testing.T, bug string) inboxtest.Store {
	t.Helper()
	m := newMemory(bug)
	runner, err := tx.NewRunner(m, nil)
	require.NoError(t, err)
	return inboxtest.Store{Driver: m, Runner: runner}
}

func (m *memory) key(consumer, id string) string {
	if m.bug == "ignores the consumer" {
		consumer = ""
	}
	return consumer + "/" + id
}

func (m *memory) get(key string) message {
	r := m.messages[key]
	if r.state == 0 {
		r.state = inbox.Fresh
	}
	return r
}

func (m *memory) Claim(_ context.Context, t *tx.Tx, consumer, id string) (inbox.Verdict, error) {
	conn, err := tx.Unwrap(t)
	if err != nil {
		return 0, err
	}
	s, ok := conn.(*session)
	if !ok {
		return 0, errors.New("not a transaction of this driver")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.key(consumer, id)
	r := m.get(k)
	switch {
	case m.open[k] && m.bug == "calls an open message done":
		return inbox.Done, nil
	case m.open[k] && m.bug != "lets a concurrent duplicate in":
		return 0, fault.New(fault.DBLockTimeout, "memory.Claim", nil)
	case r.state == inbox.Done && m.bug == "runs a duplicate again", r.state == inbox.Settling && m.bug == "a claim takes a parked message":
		r.state = inbox.Fresh
	case r.state == inbox.Done, r.state == inbox.Settling:
		return r.state, nil
	}
	m.open[k], s.claimed = true, k
	if m.bug == "completes outside of the transaction" {
		m.messages[k] = message{inbox.Done, r.attempts}
	}
	return r.state, nil
}

func (m *memory) Attempt(_ context.Context, consumer, id string) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.key(consumer, id)
	r := m.get(k)
	switch {
	case m.open[k] && m.bug != "counts an open message":
		return 0, fault.New(fault.DBLockTimeout, "memory.Attempt", nil)
	case r.state == inbox.Done && m.bug != "counts a completed message", r.state == inbox.Settling && m.bug != "an attempt takes a parked message":
		return 0, nil
	}
	if m.bug == "attempts ride the transaction" && m.current != nil {
		m.current.undo = func() { m.messages[k] = r }
	}
	m.messages[k] = message{inbox.Retried, r.attempts + 1}
	return r.attempts + 1, nil
}

func (m *memory) Park(_ context.Context, consumer string, msg inbox.Message, attempts int, _ string) (inbox.Verdict, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.key(consumer, msg.ID)
	r := m.get(k)
	switch {
	case m.open[k] && m.bug != "parks an open message":
		return 0, fault.New(fault.DBLockTimeout, "memory.Park", nil)
	case r.state == inbox.Done && m.bug != "parks a completed message", r.state == inbox.Settling && m.bug != "parks twice":
		if m.bug == "says done and parks" {
			m.messages[k] = message{inbox.Settling, attempts}
		}
		return r.state, nil
	}
	m.messages[k] = message{inbox.Settling, attempts}
	return inbox.Fresh, nil
}

// session is one transaction.
type session struct {
	*memory
	claimed string
	undo    func()
}

func (m *memory) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current = &session{memory: m}
	return m.current, nil
}
func (*session) Savepoint(context.Context, string, bool) error { return nil }
func (*session) Release(context.Context, string) error         { return nil }
func (*session) RollbackTo(context.Context, string) error      { return nil }

func (s *session) Commit(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	if r := s.get(s.claimed); s.claimed != "" && (r.state == inbox.Fresh || s.bug != "completes no counted message") {
		s.messages[s.claimed] = message{inbox.Done, r.attempts}
	}
	return nil
}

func (s *session) Rollback(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	if s.undo != nil {
		s.undo()
	}
	if s.claimed != "" && s.bug == "a rollback undoes attempts" {
		delete(s.messages, s.claimed)
	}
	return nil
}

// end is called with mu held.
func (s *session) end() {
	delete(s.open, s.claimed)
	if s.current == s {
		s.current = nil
	}
}
