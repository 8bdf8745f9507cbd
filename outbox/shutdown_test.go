package outbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
)

// stopping returns how long the relay takes to stop.
func (b *bench) stopping() time.Duration {
	b.Helper()
	t0 := time.Now()
	b.stop()
	return time.Since(t0)
}

func TestStopLetsAPublishFinish(t *testing.T) {
	relay(t, func(b *bench) {
		b.store.add("a", 1)
		b.broker.be(func(ctx context.Context, run []outbox.Event) (int, error) { return len(run), stall(ctx, 3*time.Second) })
		b.start()
		b.pass(time.Second)
		claims := b.store.claimed()
		require.Equal(t, 2*time.Second, b.stopping())
		require.Zero(t, b.store.left())
		require.Equal(t, claims, b.store.claimed(), "nothing is claimed any more")
	})
}

func TestStopCutsAPublishShortAndThatIsNoFailure(t *testing.T) {
	for name, acked := range map[string]int{"nothing stored": 0, "one stored": 1} {
		t.Run(name, func(t *testing.T) {
			relay(t, func(b *bench) {
				b.store.add("a", 3)
				b.broker.be(func(ctx context.Context, _ []outbox.Event) (int, error) {
					<-ctx.Done()
					return acked, errors.Join(errors.New("flush"), ctx.Err())
				})
				b.start()
				require.Equal(t, 5*time.Second, b.stopping())
				s := b.store.flat()
				require.Len(t, s, 1)
				require.Equal(t, outbox.Settlement{Claim: s[0].Claim, Acked: acked, GiveBack: acked == 0}, s[0])
				require.Zero(t, b.store.row(lane("a")).attempt)
				require.Empty(t, b.store.row(lane("a")).token)
				require.Zero(t, b.logged("WARN")+b.logged("ERROR"))
				require.Zero(t, b.meter.Get("outbox.failed timeout")+b.meter.Get("outbox.failed error"))
			})
		})
	}
}

func TestStopGivesBackWhatAClaimUnderWayGets(t *testing.T) {
	relay(t, func(b *bench) {
		b.store.add("a", 1)
		b.store.onClaim = func(ctx context.Context) error { return stall(ctx, time.Second) }
		b.start()
		require.Equal(t, time.Second, b.stopping())
		require.Zero(t, b.broker.count())
		s := b.store.flat()
		require.Len(t, s, 1)
		require.True(t, s[0].GiveBack)
	})
}

func TestStopWhileTheStoreHangs(t *testing.T) {
	hang := func(ctx context.Context) error { return stall(ctx, time.Hour) }
	for name, set := range map[string]func(*store){
		"claim":    func(s *store) { s.onClaim = hang },
		"next due": func(s *store) { s.onDue = hang },
		"settle":   func(s *store) { s.onSettle = hang },
		"settle, failing": func(s *store) {
			s.onSettle = func(context.Context) error { return fault.New(fault.DBUnavailable, "pgoutbox.Settle", nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			relay(t, func(b *bench) {
				b.store.add("a", 1)
				set(b.store)
				b.start()
				b.pass(time.Millisecond)
				require.LessOrEqual(t, b.stopping(), 10*time.Second)
				require.Zero(t, b.logged("ERROR", "call=claim"), "a call that is cut short by the end is no failure of the store")
			})
		})
	}
}

func TestStopWhileIdleIsAtOnce(t *testing.T) {
	relay(t, func(b *bench) {
		b.start()
		b.pass(time.Minute)
		require.Zero(t, b.stopping())
	})
}

func TestRunOfACancelledContextClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.add("a", 1)
		r, err := outbox.NewRelay(s, &broker{}, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, r.Run(ctx))
		require.Zero(t, s.calls())
	})
}
