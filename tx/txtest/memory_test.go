package txtest_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
	"caskeleton.dev/tx/txtest"
)

// memory is a driver that keeps a set of keys: the smallest that keeps the promises, but for one bug at a time.
type memory struct {
	bug   string
	conns chan struct{}
	mu    sync.Mutex
	keys  map[string]bool
	lose  *bool // whether the next COMMIT, whose answer is lost, arrives
}

const limit = 2

// newStore returns a memory with the bug, "" for none.
func newStore(t *testing.T, bug string) txtest.Store {
	t.Helper()
	m := &memory{bug: bug, conns: make(chan struct{}, limit), keys: map[string]bool{}}
	return txtest.Store{
		Driver: m, Limit: limit, Has: m.has,
		Put:  func(_ context.Context, c tx.Conn, key string) error { return c.(*session).put(key) },
		Lose: func(arrives bool) { m.lose = &arrives },
	}
}

func (m *memory) has(_ context.Context, key string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keys[key], nil
}

func (m *memory) Begin(ctx context.Context, o tx.BeginOptions) (tx.Conn, error) {
	if ctx.Err() != nil && m.bug != "begins for nobody" {
		return nil, ctx.Err()
	}
	s := &session{memory: m, witness: o.Witness, scopes: []scope{{readOnly: o.ReadOnly, keys: map[string]bool{}}}}
	if m.bug == "has no bound" {
		return s, nil
	}
	select {
	case m.conns <- struct{}{}:
		return s, nil
	case <-time.After(20 * time.Millisecond):
	}
	if m.bug == "does not say what is exhausted" {
		return nil, errors.New("busy")
	}
	return nil, fault.New(fault.DBPoolExhausted, "memory.Begin", nil)
}

// session is an open transaction; the first of its scopes is its own.
type session struct {
	*memory

	scopes        []scope
	witness       bool
	failed, ended bool
	outcome       tx.Outcome
}

type scope struct {
	name     string
	readOnly bool
	failed   bool // before it began
	keys     map[string]bool
}

func (s *session) top() *scope { return &s.scopes[len(s.scopes)-1] }

func (s *session) put(key string) error {
	there, _ := s.has(nil, key) //nolint:staticcheck // it looks at no context
	for _, sc := range s.scopes {
		there = there || sc.keys[key]
	}
	switch {
	case s.ended && s.bug != "writes after the end":
		return tx.ErrDone
	case s.refuses():
		s.failed = true
		return fault.New(fault.TXReadOnly, "memory.Put", nil)
	case s.failed:
		return errors.New("the transaction is aborted")
	case there:
		s.failed = s.bug != "commits after an error"
		return errors.New("duplicate")
	}
	s.top().keys[key] = true
	if s.ended || s.bug == "shows what is not committed" {
		s.store(s.top().keys)
	}
	return nil
}

// refuses reports whether any scope around is read-only.
func (s *session) refuses() bool {
	if s.bug == "writes in a scope inside a read-only one" {
		return s.top().readOnly
	}
	for _, sc := range s.scopes {
		if sc.readOnly && s.bug != "writes when read-only" {
			return true
		}
	}
	return false
}

func (s *session) store(keys map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.keys, keys)
}

func (s *session) end() error {
	if s.ended && s.bug != "ends twice" {
		return tx.ErrDone
	}
	s.ended = true
	if s.bug != "has no bound" {
		select {
		case <-s.conns:
		default:
		}
	}
	return nil
}

func (s *session) Commit(ctx context.Context) error {
	if ctx.Err() != nil {
		switch s.bug {
		case "keeps the connection of a dead commit":
			return ctx.Err()
		case "does not know what it never sent":
			_ = s.end()
			return fault.New(fault.DBCommitUnknown, "memory.Commit", ctx.Err())
		}
		_ = s.end()
		return ctx.Err()
	}
	if s.bug == "keeps the connection after a commit" && !s.ended {
		s.ended = true
		return nil
	}
	if err := s.end(); err != nil {
		return err
	}
	if s.failed {
		return fault.New(fault.TXRollbackOnly, "memory.Commit", nil)
	}
	lost := s.lose
	s.lose = nil
	if lost == nil || *lost {
		s.outcome = tx.Committed
		if s.bug != "commits nothing" {
			s.store(s.scopes[0].keys)
		}
	} else {
		s.outcome = tx.NotCommitted
	}
	if lost != nil && s.bug != "takes silence for success" {
		return fault.New(fault.DBCommitUnknown, "memory.Commit", nil)
	}
	return nil
}

func (s *session) Resolve(context.Context) (tx.Outcome, error) {
	switch {
	case s.bug == "guesses that it has committed":
		return tx.Committed, nil
	case s.bug == "guesses that it has not committed":
		return tx.NotCommitted, nil
	case !s.witness, s.bug == "does not look":
		return tx.Unknown, nil
	}
	return s.outcome, nil
}

func (s *session) Rollback(context.Context) error {
	if s.bug == "keeps the connection after a rollback" && !s.ended {
		s.ended = true
		return nil
	}
	if err := s.end(); err != nil {
		return err
	}
	if s.bug == "keeps what was rolled back" {
		s.store(s.scopes[0].keys)
	}
	return nil
}

func (s *session) Savepoint(_ context.Context, name string, readOnly bool) error {
	if s.ended && s.bug != "ends twice" {
		return tx.ErrDone
	}
	s.scopes = append(s.scopes, scope{name, readOnly, s.failed, map[string]bool{}})
	return nil
}

func (s *session) Release(_ context.Context, name string) error { return s.leave(name, true) }

func (s *session) RollbackTo(_ context.Context, name string) error { return s.leave(name, false) }

func (s *session) leave(name string, keep bool) error {
	if s.ended {
		return tx.ErrDone
	}
	sc := *s.top()
	if len(s.scopes) == 1 || sc.name != name {
		return errors.New("no such savepoint")
	}
	if sc.readOnly && s.bug == "stays read-only" {
		s.scopes[0].readOnly = true
	}
	s.scopes = s.scopes[:len(s.scopes)-1]
	switch {
	case keep && s.bug != "a release drops what was done", !keep && s.bug == "undoes nothing":
		maps.Copy(s.top().keys, sc.keys)
	case !keep && s.bug == "undoes too much":
		clear(s.top().keys)
	}
	if !keep && s.bug != "stays aborted" {
		s.failed = sc.failed
	}
	return nil
}
