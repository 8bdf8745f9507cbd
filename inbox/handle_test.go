package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

var errBoom = errors.New("boom")

func newInbox(tb testing.TB, s *store, o *inbox.Options) (*inbox.Inbox, *tx.Runner) {
	tb.Helper()
	runner, err := tx.NewRunner(s, nil)
	require.NoError(tb, err)
	if o == nil {
		o = &inbox.Options{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	in, err := inbox.New(s, runner, "shipping", o)
	require.NoError(tb, err)
	return in, runner
}

// handler counts its runs and returns err.
func handler(runs *int, err error) func(context.Context, *tx.Tx) error {
	return func(context.Context, *tx.Tx) error {
		*runs++
		return err
	}
}

// delivery is a message from a broker that counts.
func delivery(n int) inbox.Message {
	return inbox.Message{ID: "m1", Type: "order.placed", Payload: []byte("{}"), Deliveries: n}
}

// past returns an inbox whose first messages are through, for a broker that does not count.
func past(t *testing.T, s *store) *inbox.Inbox {
	t.Helper()
	in, _ := newInbox(t, s, &inbox.Options{CountFirst: 1})
	runs := 0
	out, err := in.Handle(t.Context(), inbox.Message{ID: "first"}, handler(&runs, nil))
	require.NoError(t, err)
	require.Equal(t, inbox.Handled, out)
	s.calls = nil
	return in
}

func requireAgain(t *testing.T, err error, bound time.Duration) {
	t.Helper()
	after, ok := fault.RetryAfter(err)
	require.True(t, ok, "no delay for the broker")
	require.LessOrEqual(t, after, bound)
}

func TestAMessageTakesEffectOnceWithOneStatement(t *testing.T) {
	s, runs := newStore(), 0
	in, _ := newInbox(t, s, nil)
	out, err := in.Handle(t.Context(), delivery(1), handler(&runs, nil))
	require.NoError(t, err)
	require.Equal(t, inbox.Handled, out)
	require.Equal(t, []string{"begin", "claim", "commit"}, s.calls)

	out, err = in.Handle(t.Context(), delivery(2), handler(&runs, nil))
	require.NoError(t, err)
	require.Equal(t, inbox.Duplicate, out)
	require.Equal(t, []string{"begin", "claim", "commit", "begin", "claim", "rollback"}, s.calls)
	require.Equal(t, 1, runs)
}

func TestEachConsumerHasTheMessage(t *testing.T) {
	s, runs := newStore(), 0
	in, runner := newInbox(t, s, nil)
	other, err := inbox.New(s, runner, "billing", nil)
	require.NoError(t, err)
	for _, in := range []*inbox.Inbox{in, other} {
		out, err := in.Handle(t.Context(), delivery(1), handler(&runs, nil))
		require.NoError(t, err)
		require.Equal(t, inbox.Handled, out)
	}
	require.Equal(t, 2, runs)
}

func TestADuplicateOfAnOpenOneIsGivenBack(t *testing.T) {
	for name, deliveries := range map[string]int{"broker counts": 1, "store counts": 0, "beyond the limit": 11} {
		t.Run(name, func(t *testing.T) {
			s, runs := newStore(), 0
			in, _ := newInbox(t, s, nil)
			out, err := in.Handle(t.Context(), delivery(1), func(context.Context, *tx.Tx) error {
				out, err := in.Handle(t.Context(), delivery(deliveries), handler(&runs, nil))
				require.ErrorIs(t, err, fault.DBLockTimeout)
				require.Equal(t, inbox.Busy, out)
				requireAgain(t, err, time.Second<<max(0, deliveries-1))
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, inbox.Handled, out)
			require.Zero(t, runs)
		})
	}
}

func TestALockTimeoutOfTheHandlerIsAFailure(t *testing.T) {
	in, _ := newInbox(t, newStore(), nil)
	runs := 0
	out, err := in.Handle(t.Context(), delivery(1), handler(&runs, fault.New(fault.DBLockTimeout, "orders.Load", nil)))
	require.ErrorIs(t, err, fault.DBLockTimeout)
	require.Equal(t, inbox.Failed, out)
}

func TestInsideATransactionItIsRefused(t *testing.T) {
	s, runs := newStore(), 0
	in, runner := newInbox(t, s, nil)
	require.NoError(t, runner.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		out, err := in.Handle(ctx, inbox.Message{ID: "m1"}, handler(&runs, nil))
		require.ErrorIs(t, err, tx.ErrNestedRoot)
		require.ErrorContains(t, err, "call Handle outside of the one that is active")
		require.Equal(t, inbox.Failed, out)
		return nil
	}))
	require.Zero(t, runs)
	require.Equal(t, []string{"begin", "commit"}, s.calls)
}

func TestAFailureRollsBackAndIsDeliveredAgain(t *testing.T) {
	wrapped := fmt.Errorf("ship: %w", fault.New(fault.DBUniqueViolation, "shipments.Insert", errBoom))
	for name, fn := range map[string]func(context.Context, *tx.Tx) error{
		"error": func(context.Context, *tx.Tx) error { return wrapped },
		"panic": func(context.Context, *tx.Tx) error { panic(wrapped) },
	} {
		t.Run(name, func(t *testing.T) {
			s, runs := newStore(), 0
			in, _ := newInbox(t, s, nil)
			out, err := in.Handle(t.Context(), delivery(1), fn)
			require.Equal(t, inbox.Failed, out)
			requireAgain(t, err, time.Second)
			if p, ok := errors.AsType[*inbox.PanicError](err); ok {
				require.Equal(t, wrapped, p.Value)
				require.Equal(t, fault.Internal, fault.CodeOf(err))
			} else {
				require.ErrorIs(t, err, errBoom)
				require.Equal(t, fault.DBUniqueViolation, fault.CodeOf(err))
			}
			require.Equal(t, []string{"begin", "claim", "rollback"}, s.calls)
			out, err = in.Handle(t.Context(), delivery(2), handler(&runs, nil))
			require.NoError(t, err)
			require.Equal(t, inbox.Handled, out)
		})
	}
}

func TestGoexitRollsBack(t *testing.T) {
	s, runs := newStore(), 0
	in, _ := newInbox(t, s, nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = in.Handle(context.WithoutCancel(t.Context()), delivery(1), func(context.Context, *tx.Tx) error {
			runtime.Goexit()
			return nil
		})
	}()
	<-ended
	require.Equal(t, []string{"begin", "claim", "rollback"}, s.calls)
	out, err := in.Handle(t.Context(), delivery(2), handler(&runs, nil))
	require.NoError(t, err)
	require.Equal(t, inbox.Handled, out)
}

func TestAnUnknownCommitIsRecognisedOrRuns(t *testing.T) {
	for _, deliveries := range []int{0, 1} {
		for committed, want := range map[bool]inbox.Outcome{true: inbox.Duplicate, false: inbox.Handled} {
			s, runs := newStore(), 0
			in, _ := newInbox(t, s, nil)
			s.commitErr, s.committed = fault.New(fault.DBCommitUnknown, "store.Commit", nil), committed
			out, err := in.Handle(t.Context(), delivery(deliveries), handler(&runs, nil))
			require.ErrorIs(t, err, fault.DBCommitUnknown)
			require.Equal(t, inbox.Failed, out)
			requireAgain(t, err, time.Second)

			s.commitErr = nil
			out, err = in.Handle(t.Context(), delivery(2*deliveries), handler(&runs, nil))
			require.NoError(t, err)
			require.Equal(t, want, out)
		}
	}
}

func TestAnUnknownCommitIsNotParkedOverItsEffect(t *testing.T) {
	s, runs := newStore(), 0
	in, _ := newInbox(t, s, nil)
	s.commitErr, s.committed = fault.New(fault.DBCommitUnknown, "store.Commit", nil), true
	out, err := in.Handle(t.Context(), delivery(10), handler(&runs, nil))
	require.NoError(t, err)
	require.Equal(t, inbox.Duplicate, out)
	require.Equal(t, "COMPLETED", s.rows["shipping/m1"].state)
}

func TestWhatTheStoreRefusesIsDeliveredAgain(t *testing.T) {
	for _, call := range []string{"begin", "claim", "attempt"} {
		s, runs := newStore(), 0
		in, _ := newInbox(t, s, nil)
		s.fail[call] = fault.New(fault.DBUnavailable, "store", nil)
		m := delivery(10)
		if call == "attempt" {
			m = delivery(0)
		}
		out, err := in.Handle(t.Context(), m, handler(&runs, nil))
		require.ErrorIs(t, err, fault.DBUnavailable)
		require.Equal(t, inbox.Failed, out)
		requireAgain(t, err, 5*time.Minute)
		require.Zero(t, runs)
		require.NotContains(t, s.calls, "park", "the handler did not run in vain")
	}
}

func TestOutcomeNames(t *testing.T) {
	require.Equal(t, "[handled duplicate busy failed parked Outcome(0)]",
		fmt.Sprint([]inbox.Outcome{inbox.Handled, inbox.Duplicate, inbox.Busy, inbox.Failed, inbox.Parked, 0}))
}
