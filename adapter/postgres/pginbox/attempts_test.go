package pginbox_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

const stateOf = `select state || ' ' || attempts from caskeleton.inbox_message where message_id = 'm1'`

func TestThePoisonMessageIsParkedAndTheOthersGoOn(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, postgres.Config{}, nil)
			for _, counts := range []int{1, 0} {
				m := inbox.Message{ID: fmt.Sprint("poison", counts), Type: "order.placed", Payload: []byte(`{"a":1}`), Headers: map[string]string{"traceparent": "00-x"}}
				runs := 0
				var out inbox.Outcome
				for n := 1; n <= 13; n++ {
					in := f.inbox(t, inbox.Options{CountFirst: 1 + n%2*100}) // a restart each time: nothing is remembered in the process
					m.Deliveries = n * counts
					var err error
					out, err = in.Handle(t.Context(), m, func(ctx context.Context, tr *tx.Tx) error {
						runs++
						return effect(m.ID, fault.New(fault.NotFound, "orders.Load", nil))(ctx, tr)
					})
					require.Equal(t, n < 10, err != nil, "delivery %d", n)
					require.Equal(t, n < 10, out == inbox.Failed)
					other := fmt.Sprint(m.ID, " other ", n)
					_, err = in.Handle(t.Context(), inbox.Message{ID: other, Deliveries: counts}, effect(other, nil))
					require.NoError(t, err)
					require.Equal(t, 1, f.effects(t, other))
				}
				require.Equal(t, inbox.Parked, out)
				require.Equal(t, 10, runs)
				require.Zero(t, f.effects(t, m.ID), "what the handler wrote went with each rollback")
				require.Equal(t, `RECOVERY_REQUIRED 10 order.placed {"a":1} {"traceparent": "00-x"} orders.Load: NOT_FOUND`, get[string](t, f,
					`select state || ' ' || attempts || ' ' || type || ' ' || convert_from(payload, 'UTF8') || ' ' || headers || ' ' || reason
					from caskeleton.inbox_message where message_id = $1`, m.ID))
			}
		})
	}
}

func TestCountsSurviveRollbacks(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, postgres.Config{}, nil)
			first := f.inbox(t, inbox.Options{})
			later := f.inbox(t, inbox.Options{CountFirst: 1})
			_, err := later.Handle(t.Context(), inbox.Message{ID: "first"}, effect("first", nil))
			require.NoError(t, err)
			for n := 1; n <= 6; n++ {
				in := first
				if n%3 == 0 {
					in = later
				}
				_, err := in.Handle(t.Context(), delivery(0), effect("m1", fault.Internal))
				require.ErrorIs(t, err, fault.Internal)
				require.Equal(t, fmt.Sprint("RECEIVED ", n), get[string](t, f, stateOf))
			}
			out, err := later.Handle(t.Context(), delivery(0), effect("m1", nil))
			require.NoError(t, err)
			require.Equal(t, inbox.Handled, out)
			require.Equal(t, "COMPLETED 7", get[string](t, f, stateOf))
			require.Equal(t, 1, f.effects(t, "m1"))
		})
	}
}

func TestAfterCrashesInTheHandlerItIsParkedBeforeItRuns(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, postgres.Config{}, nil)
			for range 10 {
				in, ended := f.inbox(t, inbox.Options{}), make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = in.Handle(t.Context(), delivery(0), func(ctx context.Context, tr *tx.Tx) error {
						_ = terminate(ctx, tr)
						runtime.Goexit() // nothing after the handler happens
						return nil
					})
				}()
				<-ended
			}
			require.Equal(t, "RECEIVED 10", get[string](t, f, stateOf))
			out, err := f.inbox(t, inbox.Options{}).Handle(t.Context(), delivery(0), never(t))
			require.NoError(t, err)
			require.Equal(t, inbox.Parked, out)
			require.Equal(t, "RECOVERY_REQUIRED 11", get[string](t, f, stateOf))

			out, err = f.inbox(t, inbox.Options{}).Handle(t.Context(), inbox.Message{ID: "m2", Deliveries: 11}, never(t))
			require.NoError(t, err)
			require.Equal(t, inbox.Parked, out)
		})
	}
}

// TestParkingNeverCoversAnEffect: a delivery beyond the limit waits for one that may still commit.
func TestParkingNeverCoversAnEffect(t *testing.T) {
	f := newFixture(t, "", postgres.Config{}, nil)
	in := f.inbox(t, inbox.Options{})
	done := make(chan inbox.Outcome, 1)
	out, err := in.Handle(t.Context(), delivery(1), func(ctx context.Context, tr *tx.Tx) error {
		go func() {
			out, _ := in.Handle(t.Context(), delivery(11), never(t))
			done <- out
		}()
		f.waiting(t, 1)
		return effect("m1", nil)(ctx, tr)
	})
	require.NoError(t, err)
	require.Equal(t, inbox.Handled, out)
	require.Equal(t, inbox.Duplicate, <-done)
	require.Equal(t, "COMPLETED 0", get[string](t, f, stateOf))
}

func TestNoValueReachesTheReasonOrTheLog(t *testing.T) {
	const canary = "canary7"
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode, postgres.Config{}, nil)
			f.exec(t, `create unique index effect_id on public.effect (id)`)
			f.exec(t, `insert into public.effect (id) values ('canary7')`)
			var log bytes.Buffer
			in := f.inbox(t, inbox.Options{MaxAttempts: 1, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			for want, fn := range map[string]func(ctx context.Context, tr *tx.Tx) error{
				"postgres.Exec: DB_UNIQUE_VIOLATION: sqlstate=23505 severity=ERROR schema=public table=effect constraint=effect_id": effect(canary, nil),
				"postgres.Query: DB_INVALID_DATA: sqlstate=22P02 severity=ERROR": func(ctx context.Context, tr *tx.Tx) error {
					q, err := postgres.Querier(tr)
					if err != nil {
						return err
					}
					var n int
					return q.QueryRow(ctx, `select ($1::text)::int4`, canary).Scan(&n)
				},
				"*errors.errorString":  func(context.Context, *tx.Tx) error { return fmt.Errorf("%w of %s", errBoom, canary) },
				"panic of type string": func(context.Context, *tx.Tx) error { panic(canary) },
			} {
				m := inbox.Message{ID: want, Deliveries: 1, Type: canary, AggregateType: canary, AggregateID: canary, Payload: []byte(canary), Headers: map[string]string{canary: canary}}
				out, err := in.Handle(t.Context(), m, fn)
				require.NoError(t, err)
				require.Equal(t, inbox.Parked, out)
				kept := get[string](t, f, `select reason from caskeleton.inbox_message where message_id = $1`, want)
				require.True(t, strings.HasPrefix(kept, want), kept) // with the routine, which is another one in other versions
				require.NotContains(t, kept, canary)
				require.Contains(t, log.String(), want)
			}
			require.NotContains(t, log.String(), canary)
		})
	}
}
