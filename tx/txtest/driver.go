package txtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx"
)

// TestDriver checks what [tx.Driver] and [tx.Conn] promise, each promise in a subtest of its name.
func TestDriver(t *testing.T, h Harness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("txtest: Harness.New is required: let it return an empty store")
	}
	suite.Test(t, driverChecks(), h.New)
}

func driverChecks() []suite.Check[Store] {
	return []suite.Check[Store]{
		{Name: "a commit keeps everything, for everybody, at once", Run: commits},
		{Name: "a rollback keeps nothing", Run: rollbacks},
		{Name: "the connection comes back", Run: comesBack},
		{Name: "nothing goes on after the end", Run: afterTheEnd},
		{Name: "beginning is bounded", Run: bounded},
		{Name: "a failed statement fails the commit", Run: aborted},
		{Name: "a savepoint is undone alone", Run: savepoints},
		{Name: "read-only is refused, and ends with its scope", Run: readOnly},
		{Name: "a lost commit is unknown, or looked up right", Run: lost},
	}
}

func commits(ctx context.Context, s Store) {
	c := s.begin(ctx, tx.BeginOptions{})
	s.put(ctx, c, "a", "b")
	s.shows(ctx, "", "before the commit")
	suite.Must(c.Commit(ctx), "commit")
	s.shows(ctx, "ab", "after the commit")
	for _, level := range []tx.Isolation{tx.RepeatableRead, tx.Serializable} {
		c := s.begin(ctx, tx.BeginOptions{Options: tx.Options{Isolation: level, LockTimeout: time.Second, Witness: true}})
		s.put(ctx, c, map[tx.Isolation]string{tx.RepeatableRead: "c", tx.Serializable: "d"}[level])
		suite.Must(c.Commit(ctx), "commit with options")
	}
	s.shows(ctx, "abcd", "after commits with options")
}

func rollbacks(ctx context.Context, s Store) {
	c := s.begin(ctx, tx.BeginOptions{})
	s.put(ctx, c, "a")
	suite.Must(c.Rollback(ctx), "rollback")
	s.shows(ctx, "", "after a rollback")
	c = s.begin(ctx, tx.BeginOptions{})
	s.put(ctx, c, "a")
	suite.Must(c.Rollback(ctx), "rollback")
}

// comesBack ends transactions in every way, with a context that has ended too.
func comesBack(ctx context.Context, s Store) {
	dead, cancel := context.WithCancel(ctx)
	cancel()
	for what, end := range map[string]func(tx.Conn){
		"after a commit":   func(c tx.Conn) { suite.Must(c.Commit(ctx), "commit") },
		"after a rollback": func(c tx.Conn) { suite.Must(c.Rollback(ctx), "rollback") },
		"after a commit with a dead context": func(c tx.Conn) {
			if err := c.Commit(dead); err == nil || errors.Is(err, fault.DBCommitUnknown) {
				suite.Fail("a commit that was never sent ended with %v", err)
			}
		},
		"after a rollback with a dead context": func(c tx.Conn) { _ = c.Rollback(dead) },
	} {
		for range s.Limit + 1 {
			end(s.begin(ctx, tx.BeginOptions{}))
		}
		s.idle(ctx, what)
	}
	if _, err := s.Driver.Begin(dead, tx.BeginOptions{}); !errors.Is(err, context.Canceled) {
		suite.Fail("a begin with a dead context ended with %v", err)
	}
	s.idle(ctx, "after a begin with a dead context")
}

func afterTheEnd(ctx context.Context, s Store) {
	for what, end := range map[string]func(tx.Conn) error{
		"commit":   func(c tx.Conn) error { return c.Commit(ctx) },
		"rollback": func(c tx.Conn) error { return c.Rollback(ctx) },
	} {
		c := s.begin(ctx, tx.BeginOptions{})
		suite.Must(end(c), what)
		for call, err := range map[string]error{
			"Commit": c.Commit(ctx), "Rollback": c.Rollback(ctx), "Savepoint": c.Savepoint(ctx, "s1", false),
			"Release": c.Release(ctx, "s1"), "RollbackTo": c.RollbackTo(ctx, "s1"), "Put": s.Put(ctx, c, "a"),
		} {
			if !errors.Is(err, tx.ErrDone) {
				suite.Fail("%s after a %s: want tx.ErrDone, got %v", call, what, err)
			}
		}
	}
	s.shows(ctx, "", "after a write to a transaction that had ended")
	s.idle(ctx, "after calls that came too late")
}

func bounded(ctx context.Context, s Store) {
	if s.Limit == 0 {
		return
	}
	var open []tx.Conn
	for range s.Limit {
		open = append(open, s.begin(ctx, tx.BeginOptions{}))
	}
	c, err := s.Driver.Begin(ctx, tx.BeginOptions{})
	if err == nil {
		_ = c.Rollback(ctx)
	}
	for _, c := range open {
		suite.Must(c.Rollback(ctx), "rollback")
	}
	coded(err, fault.DBPoolExhausted, "a begin with every connection out")
	s.idle(ctx, "after a begin that got none")
}

func aborted(ctx context.Context, s Store) {
	c := s.begin(ctx, tx.BeginOptions{})
	s.put(ctx, c, "a")
	if err := s.Put(ctx, c, "a"); err == nil {
		suite.Fail("a key was put twice")
	}
	coded(c.Commit(ctx), fault.TXRollbackOnly, "a commit after an error that nobody looked at")
	s.shows(ctx, "", "after such a commit")
	s.idle(ctx, "after such a commit")
}

func savepoints(ctx context.Context, s Store) {
	c := s.begin(ctx, tx.BeginOptions{})
	s.put(ctx, c, "a")
	suite.Must(c.Savepoint(ctx, "s1", false), "savepoint")
	s.put(ctx, c, "b")
	suite.Must(c.Savepoint(ctx, "s2", false), "savepoint in a savepoint")
	s.put(ctx, c, "c")
	suite.Must(c.RollbackTo(ctx, "s2"), "rollback to a savepoint")
	suite.Must(c.Release(ctx, "s1"), "release")
	suite.Must(c.Savepoint(ctx, "s1", false), "savepoint of a name that was used")
	s.put(ctx, c, "d")
	if err := s.Put(ctx, c, "a"); err == nil {
		suite.Fail("a key was put twice")
	}
	suite.Must(c.RollbackTo(ctx, "s1"), "rollback to a savepoint after an error")
	suite.Must(c.Commit(ctx), "commit after a savepoint that failed")
	s.shows(ctx, "ab", "after a commit with savepoints")
}

func readOnly(ctx context.Context, s Store) {
	c := s.begin(ctx, tx.BeginOptions{ReadOnly: true})
	coded(s.Put(ctx, c, "a"), fault.TXReadOnly, "a write to a read-only transaction")
	suite.Must(c.Rollback(ctx), "rollback")

	c = s.begin(ctx, tx.BeginOptions{})
	suite.Must(c.Savepoint(ctx, "s1", true), "read-only savepoint")
	suite.Must(c.Savepoint(ctx, "s2", false), "savepoint in a read-only one")
	coded(s.Put(ctx, c, "a"), fault.TXReadOnly, "a write inside a read-only savepoint")
	suite.Must(c.RollbackTo(ctx, "s2"), "rollback to the inner one")
	suite.Must(c.Release(ctx, "s1"), "release of a read-only one")
	s.put(ctx, c, "b")
	suite.Must(c.Savepoint(ctx, "s1", true), "read-only savepoint")
	suite.Must(c.RollbackTo(ctx, "s1"), "rollback to a read-only one")
	s.put(ctx, c, "c")
	suite.Must(c.Commit(ctx), "commit")
	s.shows(ctx, "bc", "after a commit with read-only savepoints")
}

// lost has to be true on both sides of the COMMIT: a driver that guesses is right on one of them.
func lost(ctx context.Context, s Store) {
	if s.Lose == nil {
		return
	}
	for _, l := range []struct {
		key              string
		arrives, witness bool
	}{{"a", false, false}, {"b", true, false}, {"c", false, true}, {"d", true, true}} {
		c := s.begin(ctx, tx.BeginOptions{Options: tx.Options{Witness: l.witness}})
		s.put(ctx, c, l.key)
		s.Lose(l.arrives)
		coded(c.Commit(ctx), fault.DBCommitUnknown, "a commit whose answer was lost")
		r, ok := c.(tx.Resolver)
		if !ok {
			continue
		}
		outcome := settle(ctx, r)
		there, err := s.Has(ctx, l.key)
		suite.Must(err, "has")
		if outcome == tx.Committed && !there || outcome == tx.NotCommitted && there {
			suite.Fail("of a commit whose answer was lost the driver says %s, and the key is there: %t", outcome, there)
		}
		if l.witness && outcome == tx.Unknown {
			suite.Fail("of a commit with a witness whose answer was lost the driver says nothing")
		}
	}
	s.idle(ctx, "after commits whose answers were lost")
}

// settle asks until the answer is final.
func settle(ctx context.Context, r tx.Resolver) tx.Outcome {
	for {
		outcome, err := r.Resolve(ctx)
		if outcome != tx.Unknown || err == nil {
			return outcome
		}
		if ctx.Err() != nil {
			suite.Fail("resolve: %v", err)
		}
	}
}
