package outbox_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
)

func TestABrokerThatIsDownPausesTheRelayAndSpendsNoAttempts(t *testing.T) {
	relay(t, func(b *bench) {
		for i := range 300 {
			b.store.add(fmt.Sprintf("%03d", i), 1)
		}
		b.broker.be(func(context.Context, []outbox.Event) (int, error) {
			return 0, fmt.Errorf("publish: %w", outbox.ErrBrokerDown)
		})
		b.start()
		first := b.broker.count()
		require.LessOrEqual(t, first, 200)
		b.pass(100 * time.Millisecond)
		require.Equal(t, first+1, b.broker.count(), "however many fail together, the first pause is short")
		b.pass(time.Minute)
		probes := b.broker.count() - first
		require.Greater(t, probes, 10)
		require.Less(t, probes, 40, "one lane finds out whether it is back, at most every few seconds")
		require.Less(t, b.store.calls(), 4*probes+20)
		for _, s := range b.store.flat() {
			require.True(t, s.GiveBack)
			require.Empty(t, s.Failure)
			require.Equal(t, 1, s.Claim.Attempt)
		}
		require.Equal(t, b.broker.count(), b.meter.Get("outbox.failed broker_down"))

		b.broker.be(func(ctx context.Context, run []outbox.Event) (int, error) {
			return len(run), stall(ctx, 100*time.Millisecond)
		})
		b.pass(6 * time.Second)
		require.Zero(t, b.store.left(), "once one was stored, lanes are published together again")
		require.Len(t, b.broker.ids(), 300)
	})
}

// TestABrokerThatIsDownIsLogged: no event is at fault, so that no lane keeps the error. A stream that is refused would never be heard of.
func TestABrokerThatIsDownIsLogged(t *testing.T) {
	relay(t, func(b *bench) {
		for i := range 300 {
			b.store.add(fmt.Sprintf("%03d", i), 1)
		}
		b.broker.be(func(context.Context, []outbox.Event) (int, error) {
			return 0, fault.Textf("sync_always is false: %w", outbox.ErrBrokerDown)
		})
		b.start()
		b.pass(30 * time.Second)
		require.Equal(t, 1, b.logged("broker is down", "sync_always is false"))
		b.pass(5 * time.Minute)
		n := b.logged("broker is down", "sync_always is false")
		require.Greater(t, n, 2)
		require.Less(t, n, 8)
	})
}

func TestWhatWasStoredBeforeTheBrokerWentDownCounts(t *testing.T) {
	relay(t, func(b *bench) {
		b.store.add("a", 3)
		down := true
		b.broker.be(func(_ context.Context, run []outbox.Event) (int, error) {
			if down {
				down = false
				return 1, outbox.ErrBrokerDown
			}
			return len(run), nil
		})
		b.start()
		b.pass(time.Second)
		require.Equal(t, []string{"a-1", "a-2", "a-3"}, b.broker.ids())
		s := b.store.flat()[0]
		require.Equal(t, outbox.Settlement{Claim: s.Claim, Acked: 1}, s)
	})
}

func TestOneOfTwoBrokersDownMakesNoBusyLoop(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.RunSize = 1
		for i := range 10 {
			b.store.add(fmt.Sprint("up-", i), 50)
		}
		b.store.add("down", 1)
		var refused atomic.Int64
		b.broker.be(func(ctx context.Context, run []outbox.Event) (int, error) {
			if run[0].AggregateID == "down" {
				refused.Add(1)
				return 0, outbox.ErrBrokerDown
			}
			return len(run), stall(ctx, time.Duration(run[0].Sequence)*time.Millisecond)
		})
		b.start()
		b.pass(10 * time.Second)
		require.Len(t, b.broker.ids(), 500, "the other one is used")
		require.Equal(t, 1, b.store.left())
		require.Less(t, refused.Load(), int64(140), "a success ends no pause")
	})
}

func TestTheRelayOutlivesItsStore(t *testing.T) {
	relay(t, func(b *bench) {
		var down atomic.Pointer[error]
		fail := func(context.Context) error {
			if err := down.Load(); err != nil {
				return *err
			}
			return nil
		}
		outage := func(code fault.Code) {
			err := error(fault.New(code, "pgoutbox.Claim", nil))
			down.Store(&err)
		}
		b.store.onClaim, b.store.onDue = fail, fail
		outage(fault.DBUnavailable)
		b.start()
		l := b.store.add("a", 1)
		for range 600 { // a bell does not hurry it
			b.opts.Bell.Ring([]outbox.Lane{l})
			b.pass(100 * time.Millisecond)
		}
		require.Less(t, b.store.claimed(), 40)
		require.Greater(t, b.store.claimed(), 10)
		require.Equal(t, 1, b.logged("ERROR"), "an outage is logged once")
		require.Equal(t, 1, b.logged("ERROR", "DB_UNAVAILABLE", "call=claim"))

		outage(fault.DBAccessDenied)
		b.pass(time.Minute)
		require.Equal(t, 2, b.logged("ERROR"), "and once more when it changes")

		down.Store(nil)
		b.pass(5 * time.Second)
		require.Equal(t, []string{"a-1"}, b.broker.ids())
		require.Equal(t, 1, b.logged("INFO", "works again"))
	})
}

func TestLanesThatComeWithAnErrorAreGivenBack(t *testing.T) {
	relay(t, func(b *bench) {
		b.store.add("a", 1)
		first := true
		b.store.onRead = func(context.Context) error {
			if first {
				first = false
				return fault.New(fault.DBUnavailable, "pgoutbox.Claim", nil)
			}
			return nil
		}
		b.start()
		require.Empty(t, b.broker.ids(), "their runs may be incomplete")
		s := b.store.flat()
		require.Equal(t, []outbox.Settlement{{Claim: s[0].Claim, GiveBack: true}}, s)
		b.pass(100 * time.Millisecond)
		require.Equal(t, []string{"a-1"}, b.broker.ids())
	})
}

func TestPollingGoesOnWithoutTheNextDue(t *testing.T) {
	relay(t, func(b *bench) {
		b.store.onDue = func(context.Context) error { return fault.New(fault.DBQueryCanceled, "pgoutbox.NextDue", nil) }
		b.start()
		b.pass(10 * time.Second)
		b.store.add("a", 1)
		b.pass(time.Second)
		require.Equal(t, []string{"a-1"}, b.broker.ids())
		require.Less(t, b.store.claimed(), 16)
	})
}

func TestAnOutcomeWaitsForTheStore(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.BatchSize, b.opts.Concurrency = 5, 10
		for i := range 30 {
			b.store.add(fmt.Sprintf("%02d", i), 1)
		}
		t0 := time.Now()
		var calls atomic.Int64
		b.store.onSettle = func(context.Context) error {
			calls.Add(1)
			if time.Since(t0) < 20*time.Second {
				return fault.New(fault.DBUnavailable, "pgoutbox.Settle", nil)
			}
			return nil
		}
		b.start()
		b.pass(19 * time.Second)
		require.Len(t, b.broker.ids(), 10, "nothing more is published than can be settled")
		require.Less(t, calls.Load(), int64(20))
		b.pass(10 * time.Second)
		require.Len(t, b.broker.ids(), 30, "and nothing twice")
		require.Zero(t, b.store.left())
		require.Zero(t, b.meter.Get("outbox.lease.lost"))
		require.Equal(t, 1, b.logged("ERROR", "call=settle"))
		require.Equal(t, 1, b.logged("INFO", "works again", "call=settle"))
	})
}

func TestACallThatHangsIsTriedAgain(t *testing.T) {
	relay(t, func(b *bench) {
		var settles, dues atomic.Int64
		hang := func(calls *atomic.Int64) func(context.Context) error {
			return func(ctx context.Context) error {
				if calls.Add(1) == 1 {
					return stall(ctx, time.Hour)
				}
				return nil
			}
		}
		b.store.onSettle, b.store.onDue = hang(&settles), hang(&dues)
		b.start()
		b.pass(5 * time.Second)
		b.store.add("a", 1)
		b.pass(time.Second)
		require.Equal(t, []string{"a-1"}, b.broker.ids())
		require.Equal(t, 1, b.store.left())
		b.pass(5*time.Second + 100*time.Millisecond)
		require.Zero(t, b.store.left())
		require.EqualValues(t, 2, settles.Load())
	})
}

func TestAnOutcomeIsLetGoWithItsLease(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.Concurrency = 2
		t0 := time.Now()
		b.store.onSettle = func(context.Context) error {
			if time.Since(t0) < 40*time.Second {
				return fault.New(fault.DBUnavailable, "pgoutbox.Settle", nil)
			}
			return nil
		}
		b.store.add("a", 1)
		b.store.add("b", 1)
		b.start()
		b.pass(70 * time.Second)
		require.Zero(t, b.store.left())
		require.Equal(t, 2, b.meter.Get("outbox.lease.lost"))
		require.Equal(t, []string{"a-1", "a-1"}, without(b.broker.ids(), "b-1"), "delivered once more")
	})
}

func TestALostClaimIsToldAndCounted(t *testing.T) {
	relay(t, func(b *bench) {
		l := b.store.add("a", 1)
		b.broker.be(func(_ context.Context, run []outbox.Event) (int, error) {
			b.store.mu.Lock()
			defer b.store.mu.Unlock()
			if r := b.store.rows[l]; r.token == "1" {
				r.token = "another relay's"
				r.due = time.Now().Add(time.Second)
			}
			return len(run), nil
		})
		b.start()
		require.Equal(t, 1, b.meter.Get("outbox.lease.lost"))
		require.Equal(t, 1, b.logged("WARN", "lost", "aggregate_id=a", "lanes=1"))
		b.pass(2 * time.Second)
		require.Zero(t, b.store.left(), "and the relay goes on")
	})
}
