package pginbox_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

// patient lets many goroutines queue for few connections and for one row.
var patient = postgres.Config{
	MaxConns: 12, AcquireTimeout: time.Minute, LockTimeout: 25 * time.Second, StatementTimeout: time.Minute, IdleTxTimeout: 2 * time.Minute,
}

func TestARedeliveryIsRecognised(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, postgres.Config{}, nil)
			for _, broker := range []int{1, 0} {
				in, id := f.inbox(t, inbox.Options{}), fmt.Sprint("m", broker)
				for n := range 3 {
					out, err := in.Handle(t.Context(), inbox.Message{ID: id, Deliveries: (n + 1) * broker}, effect(id, nil))
					require.NoError(t, err)
					require.Equal(t, map[bool]inbox.Outcome{true: inbox.Handled, false: inbox.Duplicate}[n == 0], out)
				}
				require.Equal(t, 1, f.effects(t, id))
			}
		})
	}
}

func TestFiftyAtOnceTakeEffectOnce(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, patient, nil)
			for _, deliveries := range []int{1, 0} {
				in, id := f.inbox(t, inbox.Options{}), fmt.Sprint("m", deliveries)
				outcomes := make(chan inbox.Outcome, 50)
				var wg sync.WaitGroup
				for range 50 {
					wg.Go(func() {
						out, err := in.Handle(t.Context(), inbox.Message{ID: id, Deliveries: deliveries}, effect(id, nil))
						if out == inbox.Failed {
							t.Error(err)
						}
						outcomes <- out
					})
				}
				wg.Wait()
				close(outcomes)
				counts := map[inbox.Outcome]int{}
				for out := range outcomes {
					counts[out]++
				}
				if deliveries == 0 { // those that met another one here were given back
					counts[inbox.Duplicate] += counts[inbox.Busy]
					delete(counts, inbox.Busy)
				}
				require.Equal(t, map[inbox.Outcome]int{inbox.Handled: 1, inbox.Duplicate: 49}, counts)
				require.Equal(t, 1, f.effects(t, id))
			}
		})
	}
}

// TestManyMessagesOftenDeliveredTakeEffectOnceEach lets consumers fail, crash and be delivered duplicates until each message is through.
func TestManyMessagesOftenDeliveredTakeEffectOnceEach(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, patient, nil)
			const messages, consumers, deliveries = 20, 50, 20
			in := f.inbox(t, inbox.Options{MaxAttempts: 1000, CountFirst: 10})
			var wg sync.WaitGroup
			var runs atomic.Int64
			for c := range consumers {
				wg.Go(func() {
					for n := range deliveries {
						id := fmt.Sprint("m", (n*7+c)%messages)
						_, _ = in.Handle(t.Context(), inbox.Message{ID: id, Deliveries: c % 2}, func(ctx context.Context, tr *tx.Tx) error {
							runs.Add(1)
							if err := effect(id, nil)(ctx, tr); err != nil || (n+c)%3 != 0 {
								return err
							}
							if c%10 == 0 {
								return terminate(ctx, tr)
							}
							return fault.Internal
						})
					}
				})
			}
			wg.Wait()
			require.Greater(t, runs.Load(), int64(messages), "no message ever ran again, so nothing was tried here")
			for n := range messages {
				id := fmt.Sprint("m", n)
				out, err := in.Handle(t.Context(), inbox.Message{ID: id}, effect(id, nil))
				require.NoError(t, err)
				require.Contains(t, []inbox.Outcome{inbox.Handled, inbox.Duplicate}, out)
				require.Equal(t, 1, f.effects(t, id), id)
			}
			require.Equal(t, messages, get[int](t, f, `select count(*)::int4 from caskeleton.inbox_message where state = 'COMPLETED'`))
		})
	}
}

// terminate ends the transaction's session, as a crash does.
func terminate(ctx context.Context, t *tx.Tx) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	var dead bool
	return q.QueryRow(ctx, `select pg_terminate_backend(pg_backend_pid())`).Scan(&dead)
}

func TestADuplicateWaitsForTheOpenOne(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, patient, nil)
			for _, result := range []error{nil, fault.Internal} { // the open one commits, or rolls back
				for _, counted := range []bool{false, true} { // its row is inserted, or updated
					id := fmt.Sprint(result, counted)
					if counted {
						f.attempt(t, id)
					}
					in := f.inbox(t, inbox.Options{})
					var out inbox.Outcome
					var second error
					var wg sync.WaitGroup
					_, first := in.Handle(t.Context(), inbox.Message{ID: id, Deliveries: 1}, func(ctx context.Context, tr *tx.Tx) error {
						wg.Go(func() { out, second = in.Handle(t.Context(), inbox.Message{ID: id, Deliveries: 2}, effect(id, nil)) })
						f.waiting(t, 1)
						return effect(id, result)(ctx, tr)
					})
					wg.Wait()
					require.ErrorIs(t, first, result)
					require.NoError(t, second)
					require.Equal(t, map[bool]inbox.Outcome{true: inbox.Duplicate, false: inbox.Handled}[result == nil], out)
					require.Equal(t, 1, f.effects(t, id))
				}
			}
		})
	}
}

func TestADuplicateOfALongOneIsGivenBackAndOthersGoOn(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, postgres.Config{LockTimeout: 50 * time.Millisecond}, nil)
			in := f.inbox(t, inbox.Options{})
			out, err := in.Handle(t.Context(), delivery(1), func(ctx context.Context, tr *tx.Tx) error {
				for _, deliveries := range []int{0, 2, 11} { // counted first, claimed first, parked first
					out, err := in.Handle(t.Context(), delivery(deliveries), never(t))
					require.ErrorIs(t, err, fault.DBLockTimeout)
					require.Equal(t, inbox.Busy, out)
					after, ok := fault.RetryAfter(err)
					require.True(t, ok)
					require.Positive(t, after)
				}
				out, err := in.Handle(t.Context(), inbox.Message{ID: "m2"}, effect("m2", nil))
				require.NoError(t, err)
				require.Equal(t, inbox.Handled, out)
				return effect("m1", nil)(ctx, tr)
			})
			require.NoError(t, err)
			require.Equal(t, inbox.Handled, out)
			for _, deliveries := range []int{0, 2, 11} {
				out, err = in.Handle(t.Context(), delivery(deliveries), never(t))
				require.NoError(t, err)
				require.Equal(t, inbox.Duplicate, out)
			}
			require.Equal(t, 1, f.effects(t, "m1"))
			require.Equal(t, 1, f.effects(t, "m2"))
		})
	}
}

// TestStricterIsolation: a duplicate whose snapshot is older than the other's commit is refused by the server, never run.
func TestStricterIsolation(t *testing.T) {
	for _, isolation := range []tx.Isolation{tx.RepeatableRead, tx.Serializable} {
		f := newFixture(t, "", patient, &tx.RunnerOptions{Options: tx.Options{Isolation: isolation}})
		in := f.inbox(t, inbox.Options{MaxAttempts: 1000})
		var wg sync.WaitGroup
		for n := range 50 {
			wg.Go(func() { _, _ = in.Handle(t.Context(), delivery(n+1), effect("m1", nil)) })
		}
		wg.Wait()
		require.Equal(t, 1, f.effects(t, "m1"))
		out, err := in.Handle(t.Context(), delivery(51), never(t))
		require.NoError(t, err)
		require.Equal(t, inbox.Duplicate, out)
	}
}

func TestAUniqueViolationInTheHandlerPoisonsNothing(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, postgres.Config{}, nil)
			f.exec(t, `create unique index effect_id on public.effect (id)`)
			f.exec(t, `insert into public.effect (id) values ('m1')`)
			in := f.inbox(t, inbox.Options{})
			out, err := in.Handle(t.Context(), delivery(1), effect("m1", nil))
			require.ErrorIs(t, err, fault.DBUniqueViolation)
			require.Equal(t, inbox.Failed, out)

			out, err = in.Handle(t.Context(), delivery(2), func(ctx context.Context, tr *tx.Tx) error {
				err := tr.Savepoint(ctx, func(ctx context.Context) error { return effect("m1", nil)(ctx, tr) })
				require.ErrorIs(t, err, fault.DBUniqueViolation)
				return effect("instead", nil)(ctx, tr)
			})
			require.NoError(t, err)
			require.Equal(t, inbox.Handled, out)
			require.Equal(t, 1, f.effects(t, "instead"))
		})
	}
}
