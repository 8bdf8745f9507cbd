package pginbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

// claim is a claim in a transaction that ends with result.
func (f *fixture) claim(t *testing.T, id string, result error) inbox.Verdict {
	t.Helper()
	var v inbox.Verdict
	err := f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		var err error
		v, err = f.messages.Claim(ctx, tr, "shipping", id)
		require.NoError(t, err)
		_, err = f.messages.Claim(ctx, tr, "billing", id) // another consumer, and the transaction is alive
		require.NoError(t, err)
		return result
	})
	if result == nil {
		require.NoError(t, err)
	}
	return v
}

func (f *fixture) attempt(t *testing.T, id string) int {
	t.Helper()
	n, err := f.messages.Attempt(t.Context(), "shipping", id)
	require.NoError(t, err)
	return n
}

func (f *fixture) park(t *testing.T, m inbox.Message, attempts int) inbox.Verdict {
	t.Helper()
	m.Headers = map[string]string{"k": "v"}
	v, err := f.messages.Park(t.Context(), "shipping", m, attempts, "INTERNAL")
	require.NoError(t, err)
	return v
}

func TestClaim(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, postgres.Config{}, nil)
			require.Equal(t, inbox.Fresh, f.claim(t, "a", fault.Internal))
			require.Equal(t, inbox.Fresh, f.claim(t, "a", nil), "a rollback leaves nothing")
			require.Equal(t, inbox.Done, f.claim(t, "a", nil))
			require.Zero(t, get[int](t, f, `select attempts::int4 from caskeleton.inbox_message where message_id = 'a' and consumer = 'shipping'`))

			require.Equal(t, 1, f.attempt(t, "b"))
			require.Equal(t, inbox.Retried, f.claim(t, "b", fault.Internal))
			require.Equal(t, 2, f.attempt(t, "b"))
			require.Equal(t, inbox.Retried, f.claim(t, "b", nil))
			require.Equal(t, inbox.Done, f.claim(t, "b", nil))
			require.Equal(t, 2, get[int](t, f, `select attempts::int4 from caskeleton.inbox_message where message_id = 'b' and consumer = 'shipping'`))
			require.Zero(t, f.attempt(t, "b"), "what is done is not tried")

			f.park(t, inbox.Message{ID: "c"}, 10)
			require.Equal(t, inbox.Settling, f.claim(t, "c", nil))
			require.Zero(t, f.attempt(t, "c"))
			require.Equal(t, "10 RECOVERY_REQUIRED", get[string](t, f, `select attempts || ' ' || state from caskeleton.inbox_message where message_id = 'c' and consumer = 'shipping'`))
		})
	}
}

func TestAConsumerHasRowsOfItsOwn(t *testing.T) {
	f := newFixture(t, "", postgres.Config{}, nil)
	_, err := f.messages.Attempt(t.Context(), "billing", "m1")
	require.NoError(t, err)
	for _, want := range []inbox.Outcome{inbox.Handled, inbox.Duplicate} {
		out, err := f.inbox(t, inbox.Options{}).Handle(t.Context(), delivery(1), effect("m1", nil))
		require.NoError(t, err)
		require.Equal(t, want, out)
	}
	require.Equal(t, "RECEIVED", get[string](t, f, `select state from caskeleton.inbox_message where consumer = 'billing'`))
}

func TestPark(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, postgres.Config{}, nil)
			m := inbox.Message{
				Type: "order.placed", AggregateType: "order", AggregateID: "42", Sequence: 7, ContentType: "application/octet-stream", Payload: []byte("\x00'\\\xff"),
			}
			f.attempt(t, "counted")
			for _, id := range []string{"new", "counted"} {
				m.ID = id
				require.Equal(t, inbox.Fresh, f.park(t, m, 9))
				const row = `select state || ' ' || attempts || ' ' || reason || ' ' || type || ' ' || aggregate_type || ' ' || aggregate_id || ' ' || sequence || ' ' ||
					content_type || ' ' || headers || ' ' || encode(payload, 'hex') from caskeleton.inbox_message where message_id = $1`
				want := `RECOVERY_REQUIRED 9 INTERNAL order.placed order 42 7 application/octet-stream {"k": "v"} 00275cff`
				require.Equal(t, want, get[string](t, f, row, id))
				other := m
				other.Type = "other"
				require.Equal(t, inbox.Settling, f.park(t, other, 10))
				require.Equal(t, want, get[string](t, f, row, id), "the first stands")
			}
			require.Equal(t, inbox.Fresh, f.park(t, inbox.Message{ID: "bare"}, 1), "nothing but an id")

			f.claim(t, "done", nil)
			require.Equal(t, inbox.Done, f.park(t, inbox.Message{ID: "done"}, 9))
			require.Equal(t, "COMPLETED", get[string](t, f, `select state from caskeleton.inbox_message where message_id = 'done' and consumer = 'shipping'`))
		})
	}
}

// TestTimesAreTheDatabasesOwn: of each row's times only those of its state are set, by the clock and not by the transaction's beginning.
func TestTimesAreTheDatabasesOwn(t *testing.T) {
	f := newFixture(t, "", postgres.Config{}, nil)
	before := get[time.Time](t, f, `select clock_timestamp()`)
	f.attempt(t, "retried")
	for _, id := range []string{"fresh", "retried"} {
		require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			q, err := postgres.Querier(tr)
			require.NoError(t, err)
			var begun time.Time
			require.NoError(t, q.QueryRow(ctx, `select now()`).Scan(&begun))
			_, err = f.messages.Claim(ctx, tr, "shipping", id)
			require.NoError(t, err)
			var later bool
			require.NoError(t, q.QueryRow(ctx, `select completed_at > now() from caskeleton.inbox_message where message_id = $1`, id).Scan(&later))
			require.True(t, later)
			return nil
		}))
	}
	f.park(t, inbox.Message{ID: "parked"}, 1)
	require.True(t, get[bool](t, f, `select bool_and(received_at between $1 and clock_timestamp() and coalesce(completed_at, parked_at) between received_at and clock_timestamp())
		from caskeleton.inbox_message`, before))
}

// TestAFinishedTransactionIsRefused: nothing is written outside of the transaction given.
func TestAFinishedTransactionIsRefused(t *testing.T) {
	f := newFixture(t, "", postgres.Config{}, nil)
	var kept *tx.Tx
	require.NoError(t, f.runner.InWrite(t.Context(), func(_ context.Context, tr *tx.Tx) error { kept = tr; return nil }))
	_, err := f.messages.Claim(t.Context(), kept, "shipping", "m1")
	require.ErrorIs(t, err, tx.ErrDone)
	require.Zero(t, get[int](t, f, `select count(*)::int4 from caskeleton.inbox_message`))
}

// TestARowThatVanishesIsTriedAgain: a purge, or an operator, deletes the row while a duplicate looks at it.
func TestARowThatVanishesIsTriedAgain(t *testing.T) {
	f := newFixture(t, "", postgres.Config{}, nil)
	f.exec(t, `create function public.gone() returns trigger language plpgsql as
		'begin delete from caskeleton.inbox_message where message_id = ''m1''; return null; end'`)
	f.exec(t, `create trigger gone before update on caskeleton.inbox_message for each statement execute function public.gone()`)
	f.claim(t, "m1", nil)
	f.exec(t, `delete from caskeleton.inbox_message where consumer = 'billing'`)
	out, err := f.inbox(t, inbox.Options{}).Handle(t.Context(), delivery(2), never(t))
	require.ErrorIs(t, err, fault.DBSerializationFailure)
	require.Equal(t, inbox.Failed, out)
	require.True(t, fault.Retryable(err))
}
