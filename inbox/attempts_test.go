package inbox_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

// TestABurstOfDuplicatesUsesNoAttemptsUp: they come between the count and the claim of the first one.
func TestABurstOfDuplicatesUsesNoAttemptsUp(t *testing.T) {
	s, runs := newStore(), 0
	in, _ := newInbox(t, s, nil)
	m := delivery(0)
	for range 2 {
		s.onBegin = func() {
			for range 20 {
				out, err := in.Handle(t.Context(), m, handler(&runs, nil))
				require.Equal(t, inbox.Busy, out)
				requireAgain(t, err, time.Second)
				require.True(t, fault.Retryable(err))
			}
		}
		out, err := in.Handle(t.Context(), m, handler(new(int), errBoom))
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, inbox.Failed, out)
	}
	require.Zero(t, runs)
	require.Equal(t, 2, s.rows["shipping/m1"].attempts)
}

func TestThePoisonMessageIsParked(t *testing.T) {
	for name, deliveries := range map[string]func(n int) int{
		"broker counts": func(n int) int { return n },
		"store counts":  func(int) int { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s, runs := newStore(), 0
			in := past(t, s)
			for n := 1; n < 10; n++ {
				out, err := in.Handle(t.Context(), delivery(deliveries(n)), handler(&runs, fault.New(fault.NotFound, "orders.Load", errBoom)))
				require.ErrorIs(t, err, errBoom)
				require.Equal(t, inbox.Failed, out, "delivery %d", n)
				requireAgain(t, err, time.Second<<(n-1))
			}
			for n := 10; n < 13; n++ {
				out, err := in.Handle(t.Context(), delivery(deliveries(n)), handler(&runs, fault.New(fault.NotFound, "orders.Load", errBoom)))
				require.NoError(t, err)
				require.Equal(t, inbox.Parked, out, "delivery %d", n)
			}
			require.Equal(t, 10, runs)
			m := delivery(deliveries(10))
			m.Headers = map[string]string{}
			require.Equal(t, row{"RECOVERY_REQUIRED", 10, m, "orders.Load: NOT_FOUND"}, s.rows["shipping/m1"])
		})
	}
}

func TestAMessageBeyondTheLimitIsParkedWithoutARun(t *testing.T) {
	s, runs := newStore(), 0
	in, _ := newInbox(t, s, &inbox.Options{MaxAttempts: 3})
	out, err := in.Handle(t.Context(), delivery(4), handler(&runs, nil))
	require.NoError(t, err)
	require.Equal(t, inbox.Parked, out)
	require.Zero(t, runs)
	require.Equal(t, []string{"park"}, s.calls)
	require.Equal(t, "attempt 4, and 3 are allowed: the handler was not run again", s.rows["shipping/m1"].reason)
}

// TestDeliveriesThatDidNotRunUseNoAttemptsUp: NATS counts a delivery for all that a killed process held, so that ten kills would park
// messages that never ran. The store counts runs.
func TestDeliveriesThatDidNotRunUseNoAttemptsUp(t *testing.T) {
	s, runs := newStore(), 0
	in := past(t, s) // also when the first messages are through
	m := delivery(50)
	m.Redelivered = true
	for n := 1; n < 10; n++ {
		out, err := in.Handle(t.Context(), m, handler(&runs, errBoom))
		require.Error(t, err)
		require.Equal(t, inbox.Failed, out)
		require.Equal(t, n, s.rows["shipping/m1"].attempts)
		require.Equal(t, "attempt", s.calls[0], "counted before it runs, which may end the process")
	}
	out, err := in.Handle(t.Context(), m, handler(&runs, errBoom))
	require.NoError(t, err)
	require.Equal(t, inbox.Parked, out, "and poison is parked all the same")
	require.Equal(t, 10, runs)
}

// TestAMessageThatEndsItsProcessIsParked: after each crash there is a new inbox, whose first messages are counted before they run.
func TestAMessageThatEndsItsProcessIsParked(t *testing.T) {
	s, crashes := newStore(), 0
	for range 10 {
		in, _ := newInbox(t, s, nil)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = in.Handle(context.WithoutCancel(t.Context()), delivery(0), func(context.Context, *tx.Tx) error {
				crashes++
				runtime.Goexit() // nothing after the handler happens, as in a crash
				return nil
			})
		}()
		<-ended
	}
	require.Equal(t, 10, crashes)
	in, _ := newInbox(t, s, nil)
	out, err := in.Handle(t.Context(), delivery(0), handler(&crashes, nil))
	require.NoError(t, err)
	require.Equal(t, inbox.Parked, out)
	require.Equal(t, 10, crashes)
	require.Equal(t, 11, s.rows["shipping/m1"].attempts)
}

func TestWhoCounts(t *testing.T) {
	m, runs := delivery(0), 0
	handle := func(in *inbox.Inbox, s *store, m inbox.Message, err error) []string {
		s.calls = nil
		_, _ = in.Handle(t.Context(), m, handler(&runs, err))
		return s.calls
	}
	run := []string{"begin", "claim", "commit"}
	counted := append([]string{"attempt"}, run...)

	s := newStore()
	in, _ := newInbox(t, s, &inbox.Options{CountFirst: 2})
	require.Equal(t, counted, handle(in, s, inbox.Message{ID: "a"}, nil), "the first")
	require.Equal(t, []string{"attempt", "begin", "claim", "rollback"}, handle(in, s, inbox.Message{ID: "a"}, nil), "a duplicate")
	require.Equal(t, counted, handle(in, s, inbox.Message{ID: "b"}, nil), "the second, since the duplicate used none up")
	require.Equal(t, run, handle(in, s, inbox.Message{ID: "c"}, nil), "later ones cost nothing")
	require.Equal(t, []string{"begin", "claim", "rollback", "attempt"}, handle(in, s, m, errBoom), "a failure is counted after")
	require.Equal(t, []string{"begin", "claim", "rollback", "attempt", "begin", "claim", "rollback"}, handle(in, s, m, errBoom), "a known one before")
	require.Equal(t, 2, s.rows["shipping/m1"].attempts)
	require.Equal(t, []string{"begin", "claim", "rollback", "attempt", "begin", "claim", "commit"}, handle(in, s, m, nil))
	require.Equal(t, row{state: "COMPLETED", attempts: 3}, s.rows["shipping/m1"])
}

func TestNothingIsParkedUntilItIsCommitted(t *testing.T) {
	for _, deliveries := range []int{10, 11} {
		s, runs := newStore(), 0
		in, _ := newInbox(t, s, nil)
		s.fail["park"] = fault.New(fault.DBUnavailable, "store.Park", nil)
		out, err := in.Handle(t.Context(), delivery(deliveries), handler(&runs, errBoom))
		require.ErrorIs(t, err, fault.DBUnavailable)
		require.Equal(t, inbox.Failed, out)
		requireAgain(t, err, 5*time.Minute)
	}
}

func TestTheFirstFailureMayBeTheLast(t *testing.T) {
	s, runs := newStore(), 0
	in, _ := newInbox(t, s, &inbox.Options{MaxAttempts: 1, CountFirst: 1})
	_, err := in.Handle(t.Context(), inbox.Message{ID: "first"}, handler(&runs, nil))
	require.NoError(t, err)
	out, err := in.Handle(t.Context(), delivery(0), handler(&runs, errBoom))
	require.NoError(t, err)
	require.Equal(t, inbox.Parked, out)
	require.Equal(t, 1, s.rows["shipping/m1"].attempts)
}

func TestAFailureThatCouldNotBeCountedIsAFailure(t *testing.T) {
	s, runs := newStore(), 0
	in := past(t, s)
	s.fail["attempt"] = fault.New(fault.DBUnavailable, "store", nil)
	out, err := in.Handle(t.Context(), delivery(0), handler(&runs, errBoom))
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, inbox.Failed, out)
}

func TestAnEndOfTheCallerIsNotTheMessagesFault(t *testing.T) {
	for _, deliveries := range []int{0, 10} {
		s := newStore()
		in := past(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		out, err := in.Handle(ctx, delivery(deliveries), func(ctx context.Context, _ *tx.Tx) error { cancel(); return ctx.Err() })
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, inbox.Failed, out)
		require.Equal(t, []string{"begin", "claim", "rollback"}, s.calls)
	}
	s := newStore()
	in := past(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := in.Handle(ctx, delivery(0), func(ctx context.Context, _ *tx.Tx) error { <-ctx.Done(); return ctx.Err() })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, 1, s.rows["shipping/m1"].attempts, "a handler that takes too long fails, and that is counted without the caller's context")
}
