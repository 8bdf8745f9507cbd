package outbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/outbox"
)

func TestAPublishIsBounded(t *testing.T) {
	relay(t, func(b *bench) {
		b.store.add("a", 1)
		slow := true
		b.broker.be(func(ctx context.Context, run []outbox.Event) (int, error) {
			if !slow {
				return len(run), nil
			}
			slow = false
			<-ctx.Done()
			return 0, ctx.Err()
		})
		b.start()
		b.pass(10*time.Second - 1)
		require.Empty(t, b.store.flat())
		b.pass(time.Second)
		s := b.store.flat()[0]
		require.Equal(t, "context deadline exceeded", s.Failure)
		require.Equal(t, 1, b.meter.Get("outbox.failed timeout"))
		require.Equal(t, []string{"a-1"}, b.broker.ids())
	})
}

// The lease counts from before the claim was asked for, since nobody knows when the store began it.
func TestAPublishEndsWithItsLease(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.Lease, b.opts.PublishTimeout, b.opts.Margin = 10*time.Second, 5*time.Second, 2*time.Second
		b.store.add("a", 1)
		once := true
		b.store.answer = func() { // an answer that was long under way, and came although its time was over
			if once {
				once = false
				<-time.After(6 * time.Second)
			}
		}
		t0 := time.Now()
		var until []time.Duration
		b.broker.be(func(ctx context.Context, run []outbox.Event) (int, error) {
			d, ok := ctx.Deadline()
			if ok {
				until = append(until, d.Sub(t0))
			}
			return len(run), nil
		})
		b.start()
		b.pass(7 * time.Second)
		require.Equal(t, []time.Duration{8 * time.Second}, until)
	})
}

func TestNoPublishStartsAfterTheLease(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.Lease, b.opts.PublishTimeout, b.opts.Margin = 10*time.Second, 5*time.Second, 2*time.Second
		b.store.add("a", 1)
		once := true
		b.store.answer = func() {
			if once {
				once = false
				<-time.After(8 * time.Second)
			}
		}
		t0 := time.Now()
		b.start()
		b.pass(20 * time.Second)
		first := b.store.flat()[0]
		require.Equal(t, outbox.Settlement{Claim: first.Claim, GiveBack: true}, first)
		require.Equal(t, []time.Duration{8 * time.Second}, b.published(t0), "by the next claim, which follows at once")
	})
}

func TestAClaimIsBounded(t *testing.T) {
	relay(t, func(b *bench) {
		b.opts.Lease, b.opts.PublishTimeout, b.opts.Margin = 10*time.Second, 5*time.Second, 2*time.Second
		var waited []time.Duration
		b.store.onClaim = func(ctx context.Context) error {
			t0 := time.Now()
			err := stall(ctx, time.Hour)
			waited = append(waited, time.Since(t0))
			return err
		}
		b.start()
		b.pass(3 * time.Second)
		require.Equal(t, []time.Duration{3 * time.Second}, waited, "a later answer would leave no time to publish")
	})
}
