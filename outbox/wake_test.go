package outbox_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/outbox"
)

// published returns when each event was stored, from t0 on.
func (b *bench) published(t0 time.Time) (after []time.Duration) {
	b.broker.mu.Lock()
	defer b.broker.mu.Unlock()
	for _, at := range b.broker.at {
		after = append(after, at.Sub(t0))
	}
	return after
}

func TestABellWakesAtOnce(t *testing.T) {
	relay(t, func(b *bench) {
		b.start()
		b.pass(300 * time.Millisecond)
		t0 := time.Now()
		l := b.store.add("a", 1)
		b.opts.Bell.Ring([]outbox.Lane{l})
		b.pass(0)
		require.Equal(t, []time.Duration{0}, b.published(t0))
		require.Equal(t, []outbox.Lane{l}, b.store.asks()[b.store.claimed()-1].Rung)
		n := b.store.claimed()
		b.pass(500 * time.Millisecond)
		require.Equal(t, n, b.store.claimed(), "one ring is one look")
	})
}

func TestARingThatALookHasAnsweredMakesNoOther(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.PollInterval = time.Minute
		b.opts.Bell.Ring([]outbox.Lane{b.store.add("a", 1)})
		b.start() // looks anyway
		b.pass(time.Second)
		require.Equal(t, []string{"a-1"}, b.broker.ids())
		require.Equal(t, 1, b.store.claimed())
	})
}

func TestWithoutABellPollingFindsIt(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.Bell = nil
		b.start()
		for i := range 50 {
			t0 := time.Now()
			b.store.add(fmt.Sprint(i), 1)
			b.pass(time.Second)
			at := b.published(t0)
			require.Len(t, at, i+1)
			require.LessOrEqual(t, at[i], time.Second)
		}
	})
}

func TestAnIdleRelayPollsAndNoMore(t *testing.T) {
	relay(t, func(b *bench) {
		b.start()
		b.pass(time.Minute)
		require.GreaterOrEqual(t, b.store.claimed(), 60)
		require.LessOrEqual(t, b.store.claimed(), 81)
		require.LessOrEqual(t, b.store.asked(), b.store.claimed())
		require.Empty(t, b.store.flat())
		require.NotEqual(t, 61, b.store.claimed(), "polls are jittered")
	})
}

func TestTheRelaySleepsPreciselyToTheNextDue(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.PollInterval = time.Minute
		t0 := time.Now()
		b.store.addDue("a", 1, t0.Add(337*time.Millisecond))
		b.store.addDue("b", 1, t0.Add(12345*time.Millisecond))
		b.start()
		b.pass(30 * time.Second)
		require.Equal(t, []time.Duration{337 * time.Millisecond, 12345 * time.Millisecond}, b.published(t0))
		require.LessOrEqual(t, b.store.calls(), 12)
	})
}

func TestARetryIsNotLate(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.PollInterval, b.opts.BackoffBase = time.Minute, 30*time.Second
		failed := false
		b.broker.be(func(_ context.Context, run []outbox.Event) (int, error) {
			if failed {
				return len(run), nil
			}
			failed = true
			return 0, fmt.Errorf("not now")
		})
		t0 := time.Now()
		b.store.add("a", 1)
		b.start()
		b.pass(30 * time.Second)
		retry := max(b.store.flat()[0].Retry, time.Millisecond)
		require.Equal(t, []time.Duration{retry}, b.published(t0))
	})
}

func TestABellDoesNotShortenABackoff(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.BackoffBase = time.Minute
		l := b.store.add("a", 1)
		b.broker.be(func(context.Context, []outbox.Event) (int, error) { return 0, fmt.Errorf("not now") })
		b.start()
		retry := b.store.flat()[0].Retry
		for t0 := time.Now(); time.Since(t0) < retry-10*time.Millisecond; {
			b.opts.Bell.Ring([]outbox.Lane{l})
			b.pass(min(time.Second, retry-10*time.Millisecond-time.Since(t0)))
		}
		require.Equal(t, 1, b.broker.count())
	})
}

func TestRingsInVainHideNothing(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.BatchSize, b.opts.PollInterval = 1, time.Minute
		b.start()
		b.pass(time.Second)
		for i := range 5 {
			b.store.add(fmt.Sprint(i), 1)
		}
		b.opts.Bell.Ring([]outbox.Lane{lane("gone"), lane("gone too")})
		b.pass(0)
		require.Len(t, b.broker.ids(), 5)
	})
}

func TestAFullBatchIsFollowedAtOnce(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.BatchSize, b.opts.Concurrency, b.opts.PollInterval = 10, 20, time.Minute
		t0 := time.Now()
		for i := range 1000 {
			b.store.add(fmt.Sprintf("%03d", i), 1)
		}
		b.start()
		b.pass(0)
		require.Len(t, b.broker.ids(), 1000)
		require.Zero(t, b.published(t0)[999])
		require.LessOrEqual(t, b.store.claimed(), 210)
	})
}

func TestALongLaneIsFollowedAtOnce(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.RunSize, b.opts.PollInterval = 5, time.Minute
		t0 := time.Now()
		b.store.add("a", 5000)
		b.start()
		require.Len(t, b.broker.ids(), 5000)
		require.Zero(t, b.published(t0)[4999])
		require.LessOrEqual(t, b.store.asked(), 2, "what is known to have more needs no question")
	})
}

func TestALaneKeptForAnOpenAppendIsLookedAtAtThePaceOfTheStore(t *testing.T) {
	relay(t, func(b *bench) {
		l := b.store.add("a", 1)
		b.store.open[l] = true
		b.start()
		b.pass(time.Minute)
		require.Equal(t, []string{"a-1"}, b.broker.ids())
		require.LessOrEqual(t, b.store.claimed(), 620, "every 100 ms")
		b.store.add("a", 1) // the append commits, and nobody rings
		b.pass(100 * time.Millisecond)
		require.Equal(t, []string{"a-1", "a-2"}, b.broker.ids())
	})
}

func TestALaneThatIsDueAndLockedMakesNoBusyLoop(t *testing.T) {
	relay(t, func(b *bench) {
		l := b.store.add("a", 1)
		b.store.locked[l] = true
		b.start()
		b.pass(time.Minute)
		require.LessOrEqual(t, b.store.claimed(), 620)
		b.store.mu.Lock()
		b.store.locked[l] = false
		b.store.mu.Unlock()
		b.pass(100 * time.Millisecond)
		require.Equal(t, []string{"a-1"}, b.broker.ids())
	})
}

func TestFullClaimsStartWhereTheLastOneEnded(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.BatchSize, b.opts.Concurrency = 1, 1
		b.store.onClaim = func(ctx context.Context) error { return stall(ctx, 300*time.Millisecond) }
		t0 := time.Now().Add(-time.Hour)
		for i := range 7 {
			b.store.addDue(fmt.Sprint(i), 1, t0.Add(time.Duration(i)*time.Minute))
		}
		rung := b.store.addDue("rung", 1, time.Now().Add(-time.Second))
		b.start()
		b.pass(1500 * time.Millisecond) // five claims; the sixth is under way
		b.opts.Bell.Ring([]outbox.Lane{rung})
		b.pass(3 * time.Second)
		require.Zero(t, b.store.left())

		minutes := []int{}
		for _, r := range b.store.asks()[:9] {
			m := -1 // all
			if !r.Floor.IsZero() {
				m = int(r.Floor.Sub(t0) / time.Minute)
			}
			minutes = append(minutes, m)
		}
		// A look at all at the start, and where the last is 1 s old; the claim that was rung, the seventh, raises nothing; it was full, as was
		// the eighth, which took the last lane; the ninth found nothing.
		require.Equal(t, []int{-1, 0, 1, 2, -1, 4, 5, 5, -1}, minutes)
		require.True(t, b.store.asks()[9].Floor.IsZero(), "after a claim that was not full")
	})
}

func TestAClaimThatWasNotFullIsFollowedByALookAtAll(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.BatchSize, b.opts.Concurrency = 2, 2
		for i := range 3 {
			b.store.add(fmt.Sprint(i), 1)
		}
		b.start()
		b.opts.Bell.Ring(nil)
		b.pass(0)
		all := []bool{}
		for _, r := range b.store.asks() {
			all = append(all, r.Floor.IsZero())
		}
		require.Equal(t, []bool{true, false, true}, all)
	})
}
