package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
)

func TestRelayDeliversInOrderAndInRuns(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.RunSize = 3
		b.store.add("a", 7)
		b.store.onClaim = func(ctx context.Context) error { return stall(ctx, 5*time.Millisecond) }
		var runs []int
		b.broker.be(func(_ context.Context, run []outbox.Event) (int, error) {
			runs = append(runs, len(run))
			return len(run), nil
		})
		b.start()
		b.pass(100 * time.Millisecond)
		require.Equal(t, []string{"a-1", "a-2", "a-3", "a-4", "a-5", "a-6", "a-7"}, b.broker.ids())
		require.Equal(t, []int{3, 3, 1}, runs)
		require.Zero(t, b.store.left())
		require.Equal(t, 7, b.meter.Get("outbox.published"))
		require.Equal(t, b.store.claimed(), b.meter.Get("outbox.claim.duration count"))
		require.InDelta(t, 0.005*float64(b.store.claimed()), b.meter.Sums()["outbox.claim.duration sum"], 1e-9)
	})
}

func TestAFailedEventIsTriedAgainAndNothingOvertakesIt(t *testing.T) {
	relay(t, func(b *bench) {
		failures := 0
		b.store.add("a", 4)
		b.store.add("b", 1)
		b.broker.be(func(_ context.Context, run []outbox.Event) (int, error) {
			for i, e := range run {
				if e.ID == "a-3" && failures < 5 {
					failures++
					return i, fault.Textf("refused\x00 for the %dth time \xff", failures)
				}
			}
			return len(run), nil
		})
		b.start()
		b.pass(10 * time.Second)
		require.Subset(t, b.broker.ids(), []string{"b-1"})
		require.Equal(t, []string{"a-1", "a-2", "a-3", "a-4"}, without(b.broker.ids(), "b-1"))

		var failed []outbox.Settlement
		for _, s := range b.store.flat() {
			if s.Failure != "" {
				failed = append(failed, s)
			}
		}
		require.Len(t, failed, 5)
		require.Equal(t, 2, failed[0].Acked, "what was stored before the failure is not sent again")
		for i, s := range failed {
			require.Equal(t, fmt.Sprintf("refused  for the %dth time ", i+1), s.Failure, "the error is kept as text that can be stored")
			if i > 0 {
				require.Equal(t, 0, s.Acked)
				require.Equal(t, i+1, s.Claim.Attempt)
			}
			require.Positive(t, s.Retry)
			require.LessOrEqual(t, s.Retry, 100*time.Millisecond<<i)
			require.False(t, s.GiveBack)
		}
		require.Equal(t, 5, b.meter.Get("outbox.failed error"))
		require.Equal(t, 3, b.logged("WARN", "event_id=a-3"), "at the attempts 1, 2 and 4")
	})
}

func TestAnEventThatBecameTheHeadStartsItsOwnBackoff(t *testing.T) {
	relay(t, func(b *bench) {
		b.store.add("a", 2)
		tries := 0
		b.broker.be(func(context.Context, []outbox.Event) (int, error) {
			tries++
			return min(tries/4, 1), errors.New("refused") // the fourth time it is the second event that fails
		})
		b.start()
		for len(b.store.flat()) < 4 {
			b.pass(time.Millisecond)
		}
		last := b.store.flat()[3]
		require.Equal(t, 4, last.Claim.Attempt)
		require.Equal(t, 1, last.Acked)
		require.LessOrEqual(t, last.Retry, 100*time.Millisecond)
		require.Equal(t, 1, b.logged("WARN", "event_id=a-2", "attempt=1 ", last.Retry.String()))
	})
}

func without(ids []string, id string) (rest []string) {
	for _, x := range ids {
		if x != id {
			rest = append(rest, x)
		}
	}
	return rest
}

func TestAPublisherThatMisbehavesFailsItsRunOnly(t *testing.T) {
	for name, c := range map[string]struct {
		publish func(ctx context.Context, run []outbox.Event) (int, error)
		failure string
		reason  string
		acked   int
	}{
		"panic":          {func(context.Context, []outbox.Event) (int, error) { panic("boom") }, "the publisher panicked: a value of type string", "panic", 0},
		"no reason":      {func(context.Context, []outbox.Event) (int, error) { return 1, nil }, "the publisher named 1 of 3 events as stored, and gave no reason", "error", 1},
		"too many":       {func(context.Context, []outbox.Event) (int, error) { return 4, nil }, "the publisher named 4 of 3 events as stored", "error", 0},
		"less than none": {func(context.Context, []outbox.Event) (int, error) { return -1, nil }, "the publisher named -1 of 3 events as stored", "error", 0},
		"error, all stored": {func(_ context.Context, run []outbox.Event) (int, error) {
			return len(run), errors.New("the connection closed after the last acknowledgement")
		}, "", "", 3},
	} {
		t.Run(name, func(t *testing.T) {
			relay(t, func(b *bench) {
				b.store.add("a", 3)
				b.store.add("b", 1)
				b.broker.be(func(ctx context.Context, run []outbox.Event) (int, error) {
					if run[0].ID == "a-1" {
						return c.publish(ctx, run)
					}
					return len(run), nil
				})
				b.start()
				for _, s := range b.store.flat() {
					if s.Claim.AggregateID == "a" {
						require.Equal(t, c.failure, s.Failure)
						require.Equal(t, c.acked, s.Acked)
					}
				}
				if c.reason != "" {
					require.Equal(t, 1, b.meter.Get("outbox.failed "+c.reason))
				}
				b.broker.be(nil)
				b.pass(time.Second)
				require.Zero(t, b.store.left())
			})
		})
	}
}

func TestAnEmptyRunIsSettledAndNotPublished(t *testing.T) {
	relay(t, func(b *bench) {
		b.store.add("a", 0)
		b.start()
		require.Zero(t, b.broker.count())
		require.Zero(t, b.store.left())
		s := b.store.flat()
		require.Len(t, s, 1)
		require.Equal(t, outbox.Settlement{Claim: s[0].Claim}, s[0])
	})
}

func TestAGapStopsItsLaneWithAnAlarm(t *testing.T) {
	relay(t, func(b *bench) {
		l := b.store.add("a", 5)
		b.store.missing[l] = 3
		b.start()
		b.pass(10 * time.Minute)
		require.Equal(t, []string{"a-1", "a-2"}, b.broker.ids())
		alarms := b.logged("ERROR", "aggregate_id=a", "sequence=3")
		require.GreaterOrEqual(t, alarms, 10, "the alarm goes on")
		require.Less(t, alarms, 100, "at the pace of the back-off")
		require.Equal(t, alarms, b.meter.Get("outbox.failed gap"))
		require.Equal(t, "event 3 of the aggregate is missing", b.store.row(l).failure)

		b.store.mu.Lock()
		delete(b.store.missing, l)
		b.store.mu.Unlock()
		b.pass(time.Minute)
		require.Equal(t, []string{"a-1", "a-2", "a-3", "a-4", "a-5"}, b.broker.ids())
	})
}

func TestManyLanesArePublishedAtOnceButNoMoreThanConcurrency(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.BatchSize, b.opts.Concurrency = 4, 6
		for i := range 12 {
			b.store.add(fmt.Sprintf("%02d", i), 1)
		}
		b.broker.be(func(ctx context.Context, run []outbox.Event) (int, error) {
			if run[0].AggregateID == "00" {
				return len(run), stall(ctx, 5*time.Second)
			}
			return len(run), stall(ctx, time.Second)
		})
		b.start()
		require.Equal(t, 6, b.broker.count(), "no lane waits for its turn while its lease runs down")
		limits := []int{}
		for _, r := range b.store.asks() {
			limits = append(limits, r.Limit)
		}
		require.Equal(t, []int{4, 2}, limits)

		b.pass(time.Second)
		require.Len(t, b.store.batches(), 1, "those that end together are settled together")
		require.Len(t, b.store.flat(), 4)
		b.pass(linger)
		require.Len(t, b.store.flat(), 5, "each is settled as it returns, whatever the slow one does")
		require.Equal(t, 11, b.broker.count())
		b.pass(5 * time.Second)
		require.Zero(t, b.store.left())
	})
}

const linger = 2 * time.Millisecond
