package memory

import (
	"context"
	"errors"
	"slices"
	"sync"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// Transactions is a [tx.Driver] for the stores of this package that ride a transaction. What they write in one is seen by others, and by
// its own reads, once it commits; what they lock is locked until its end. After an error with a code it can only be rolled back, to a savepoint
// or whole. Any number may be open. Safe for concurrent use.
type Transactions struct{}

// Begin implements [tx.Driver].
func (Transactions) Begin(ctx context.Context, o tx.BeginOptions) (tx.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &session{readOnly: o.ReadOnly}, nil
}

// session is an open transaction.
type session struct {
	mu       sync.Mutex
	readOnly bool
	steps    []step
	marks    []mark
	failed   bool // it can only be rolled back
	ended    bool
}

// step is what a store does in a transaction. Each is called without a lock of the session's, once at most: commit or undo.
type step struct{ commit, undo func() }

type mark struct {
	name     string
	steps    int
	readOnly bool
	failed   bool
}

// sessionOf returns the session of t.
func sessionOf(t *tx.Tx) (*session, error) {
	conn, err := tx.Unwrap(t)
	if err != nil {
		return nil, err
	}
	s, ok := conn.(*session)
	if !ok {
		return nil, errors.New("memory: the transaction is of another driver; begin it with a runner on memory.Transactions")
	}
	return s, nil
}

// add has a step done with the transaction.
func (s *session) add(op string, st step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return tx.ErrDone
	case s.failed:
		return fault.New(fault.TXRollbackOnly, op, nil)
	case s.readOnly:
		s.failed = true
		return fault.New(fault.TXReadOnly, op, nil)
	}
	s.steps = append(s.steps, st)
	return nil
}

// fail returns err, after which the transaction cannot commit, or not before it is back at a savepoint.
func (s *session) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = true
	return err
}

// end returns what there is to commit or to undo.
func (s *session) end() (steps []step, failed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false, tx.ErrDone
	}
	steps = s.steps
	s.steps, s.ended = nil, true
	return steps, s.failed, nil
}

// Commit implements [tx.Conn].
func (s *session) Commit(ctx context.Context) error {
	steps, failed, err := s.end()
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		undo(steps)
		return ctx.Err()
	case failed:
		undo(steps)
		return fault.New(fault.TXRollbackOnly, "memory.Commit", nil)
	}
	for _, st := range steps {
		st.commit()
	}
	return nil
}

// Rollback implements [tx.Conn].
func (s *session) Rollback(context.Context) error {
	steps, _, err := s.end()
	undo(steps)
	return err
}

func undo(steps []step) {
	for _, st := range slices.Backward(steps) {
		st.undo()
	}
}

// Savepoint implements [tx.Conn].
func (s *session) Savepoint(_ context.Context, name string, readOnly bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return tx.ErrDone
	}
	s.marks = append(s.marks, mark{name, len(s.steps), s.readOnly, s.failed})
	s.readOnly = s.readOnly || readOnly
	return nil
}

// leave ends the innermost scope. It is called with mu held.
func (s *session) leave(name string) (mark, error) {
	if s.ended {
		return mark{}, tx.ErrDone
	}
	n := len(s.marks) - 1
	if n < 0 || s.marks[n].name != name {
		return mark{}, errors.New("memory: there is no savepoint " + name)
	}
	m := s.marks[n]
	s.marks, s.readOnly = s.marks[:n], m.readOnly
	return m, nil
}

// Release implements [tx.Conn].
func (s *session) Release(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.leave(name)
	return err
}

// RollbackTo implements [tx.Conn].
func (s *session) RollbackTo(_ context.Context, name string) error {
	s.mu.Lock()
	m, err := s.leave(name)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	undone := s.steps[m.steps:]
	s.steps = s.steps[:m.steps:m.steps]
	s.failed = m.failed
	s.mu.Unlock()
	undo(undone)
	return nil
}
