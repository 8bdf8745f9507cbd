package inboxtest

import (
	"context"
	"testing"
	"time"

	"caskeleton.dev/inbox"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx"
)

// DriverHarness makes what [TestDriver] tests.
type DriverHarness struct {
	// New returns a store that no other check uses: they run in parallel. It cleans up by t.Cleanup.
	New func(t *testing.T) Store
}

// TestDriver checks what [inbox.Driver] promises, each promise in a subtest of its name.
func TestDriver(t *testing.T, h DriverHarness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("inboxtest: DriverHarness.New is required: let it return an empty store")
	}
	suite.Test(t, driverChecks(), h.New)
}

func driverChecks() []suite.Check[Store] {
	return []suite.Check[Store]{
		{Name: "a message is claimed once", Run: once},
		{Name: "a rollback gives the message back", Run: rollback},
		{Name: "a concurrent duplicate waits or is busy", Run: concurrent},
		{Name: "attempts survive rollbacks", Run: attempts},
		{Name: "a parked message stays parked", Run: parked},
		{Name: "a completed message is never parked", Run: completed},
		{Name: "other messages and consumers are unaffected", Run: others},
	}
}

func once(ctx context.Context, s Store) {
	s.finds(ctx, inbox.Fresh, "m", nil, "a new message")
	for range 2 {
		s.finds(ctx, inbox.Done, "m", nil, "a message that has taken effect")
	}
	s.attempt(ctx, 0, "m", "a message that has taken effect")
	s.attempt(ctx, 1, "n", "a message that is counted first")
	s.finds(ctx, inbox.Retried, "n", nil, "a message that was counted")
	s.finds(ctx, inbox.Done, "n", nil, "a message that was counted and has taken effect")
}

func rollback(ctx context.Context, s Store) {
	for range 2 {
		s.finds(ctx, inbox.Fresh, "m", errRollback, "a message whose transaction was rolled back, if any")
	}
	s.attempt(ctx, 1, "m", "a message whose transaction was rolled back")
	for range 2 {
		s.finds(ctx, inbox.Retried, "m", errRollback, "a counted message whose transaction was rolled back, if any")
	}
	s.finds(ctx, inbox.Retried, "m", nil, "a counted message whose transaction was rolled back")
	s.finds(ctx, inbox.Done, "m", nil, "a message that has taken effect")
}

// concurrent has each method meet a message that is open in another transaction.
func concurrent(ctx context.Context, s Store) {
	brief := Store{s.Driver, s.Runner.With(tx.Options{LockTimeout: 20 * time.Millisecond})}
	_, err := s.claim(ctx, consumer, "brief", nil, func() {
		if v, err := brief.claim(context.WithoutCancel(ctx), consumer, "brief", errRollback, nil); !busy(err) {
			suite.Fail("a duplicate of an open message got %s and %v, not DB_LOCK_TIMEOUT", word(v), err)
		}
	})
	suite.Must(err, "claim")

	for name, c := range map[string]struct {
		call        func(id string) (int, error)
		done, fresh int
	}{
		"claim": {func(id string) (int, error) {
			v, err := s.claim(ctx, consumer, id, nil, nil)
			return int(v), err
		}, int(inbox.Done), int(inbox.Fresh)},
		"attempt": {func(id string) (int, error) { return s.Driver.Attempt(ctx, consumer, id) }, 0, 1},
		"park": {func(id string) (int, error) {
			v, err := s.Driver.Park(ctx, consumer, message(id), 3, "it was refused")
			return int(v), err
		}, int(inbox.Done), int(inbox.Fresh)},
	} {
		for _, end := range []struct {
			what   string
			result error
			want   int
		}{{"committed", nil, c.done}, {"rolled back", errRollback, c.fresh}} {
			id := name + " " + end.what
			type answer struct {
				n   int
				err error
			}
			answers := make(chan answer, 1)
			_, err := s.claim(ctx, consumer, id, end.result, func() {
				go func() {
					n, err := c.call(id)
					answers <- answer{n, err}
				}()
				select {
				case a := <-answers:
					if !busy(a.err) {
						suite.Fail("%s of an open message ended with %d and %v before the message was %s", name, a.n, a.err, end.what)
					}
					answers <- a
				case <-time.After(50 * time.Millisecond): // it waits, or has not begun: either way the end decides
				}
			})
			suite.Must(err, "claim")
			a := <-answers
			if busy(a.err) {
				a.n, a.err = c.call(id)
			}
			suite.Must(a.err, name+" beside a message that was then "+end.what)
			suite.Equal(end.want, a.n, name+" beside a message that was then "+end.what)
		}
	}
}

func attempts(ctx context.Context, s Store) {
	for n := 1; n <= 3; n++ {
		s.attempt(ctx, n, "m", "a message that failed before")
		s.finds(ctx, inbox.Retried, "m", errRollback, "a message that was counted")
	}
	_, err := s.claim(ctx, consumer, "n", errRollback, func() { s.attempt(ctx, 4, "m", "a message beside an open transaction") })
	suite.Must(err, "claim")
	_ = s.Runner.InRootWrite(ctx, func(ctx context.Context, _ *tx.Tx) error {
		s.attempt(ctx, 5, "m", "a message inside a transaction")
		return errRollback
	})
	s.attempt(ctx, 6, "m", "a message whose last attempt was inside a transaction that was rolled back")
	s.finds(ctx, inbox.Retried, "m", nil, "a message that was counted")
	s.attempt(ctx, 0, "m", "a message that has taken effect")
}

func parked(ctx context.Context, s Store) {
	s.attempt(ctx, 1, "counted", "a new message")
	for _, id := range []string{"new", "counted"} {
		s.park(ctx, 0, id, "a message")
		for range 2 {
			s.finds(ctx, inbox.Settling, id, nil, "a parked message")
			s.attempt(ctx, 0, id, "a parked message")
			s.park(ctx, inbox.Settling, id, "a parked message")
		}
	}
	_, err := s.Driver.Park(ctx, consumer, inbox.Message{ID: "bare", Headers: map[string]string{}}, 1, "")
	suite.Must(err, "parking a message with an id and nothing else")
	s.finds(ctx, inbox.Settling, "bare", nil, "a parked message")
}

func completed(ctx context.Context, s Store) {
	s.finds(ctx, inbox.Fresh, "m", nil, "a new message")
	s.attempt(ctx, 1, "n", "a new message")
	s.finds(ctx, inbox.Retried, "n", nil, "a message that was counted")
	for _, id := range []string{"m", "n"} {
		s.park(ctx, inbox.Done, id, "a message that has taken effect")
		s.finds(ctx, inbox.Done, id, nil, "a message that has taken effect, and was not to be parked")
	}
}

func others(ctx context.Context, s Store) {
	s.finds(ctx, inbox.Fresh, "m", nil, "a new message")
	s.park(ctx, 0, "n", "a new message")
	s.attempt(ctx, 1, "o", "a new message")
	for _, id := range []string{"m", "n", "o"} {
		v, err := s.claim(ctx, "billing", id, nil, nil)
		suite.Must(err, "claim of another consumer")
		equal(inbox.Fresh, v, "claim of another consumer")
	}
	s.finds(ctx, inbox.Done, "m", nil, "a message that has taken effect")
	s.finds(ctx, inbox.Settling, "n", nil, "a parked message that another consumer has completed")
	s.finds(ctx, inbox.Retried, "o", nil, "a counted message that another consumer has completed")
	s.finds(ctx, inbox.Fresh, "p", nil, "a message nobody has seen")
}
