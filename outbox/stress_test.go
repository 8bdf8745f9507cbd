package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
)

// dice are random numbers for many goroutines.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) oneIn(n int) bool { return d.n(n) == 0 }

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

func (d *dice) upTo(most time.Duration) time.Duration { return time.Duration(d.n(int(most))) }

// Whatever fails and whoever is stopped: every event is delivered, in order within its lane, and no publish starts after its lease.
func TestStress(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { stress(t, &dice{r: rand.New(rand.NewPCG(seed, 5))}) })
		})
	}
}

const (
	stressLanes  = 12
	stressEvents = 3000
	stressLease  = 2 * time.Second
	stressMargin = 200 * time.Millisecond
)

func stress(t *testing.T, d *dice) {
	t.Helper()
	s, b := newStore(), &broker{}
	flaky := func(ctx context.Context) error {
		if err := stall(ctx, d.upTo(20*time.Millisecond)); err != nil {
			return err
		}
		switch {
		case d.oneIn(20):
			return fault.New(fault.DBUnavailable, "store", nil)
		case d.oneIn(200):
			return stall(ctx, 3*time.Second)
		}
		return nil
	}
	s.onClaim, s.onRead, s.onSettle, s.onDue, s.after = flaky, flaky, flaky, flaky, flaky
	s.answer = func() {
		if d.oneIn(100) {
			<-time.After(d.upTo(2 * stressLease)) // an answer that comes too late
		}
	}
	var late sync.Map
	b.be(func(ctx context.Context, run []outbox.Event) (int, error) {
		if end := s.row(run[0].Lane()).due.Add(-stressMargin); time.Now().After(end) {
			late.Store(run[0].ID, true)
		}
		if err := stall(ctx, d.upTo(50*time.Millisecond)); err != nil {
			return 0, err
		}
		n := d.n(len(run) + 1)
		switch d.n(12) {
		case 0:
			return n, errors.New("refused")
		case 1:
			return n, outbox.ErrBrokerDown
		case 2:
			panic("boom")
		case 3:
			return n, nil // an answer that makes no sense
		case 4:
			return n, stall(ctx, time.Hour)
		}
		return len(run), nil
	})

	bell := outbox.NewBell()
	ctx, cancel := context.WithCancel(t.Context())
	var relays sync.WaitGroup
	for i := range 3 {
		relays.Go(func() { restarting(ctx, t, d, s, b, bell, i) })
	}
	for made := 0; made < stressEvents; {
		n := 1 + d.n(30)
		l := s.add(fmt.Sprint(d.n(stressLanes)), n)
		made += n
		if d.oneIn(2) {
			bell.Ring([]outbox.Lane{l})
		}
		<-time.After(d.upTo(40 * time.Millisecond))
	}
	for waited := 0; s.left() > 0 && waited < 3600; waited++ {
		<-time.After(time.Second)
	}
	cancel()
	relays.Wait()

	require.Zero(t, s.left(), "lanes that were not delivered within an hour")
	late.Range(func(id, _ any) bool { t.Errorf("the publish of %v began after its lease", id); return true })
	for l, events := range s.events {
		var got []int64
		for _, e := range b.stored {
			if e.Lane() == l && !slices.Contains(got, e.Sequence) {
				got = append(got, e.Sequence)
			}
		}
		require.Len(t, got, len(events), "events of %v that were lost", l)
		require.True(t, slices.IsSorted(got), "%v was delivered out of order: %v", l, got)
	}
}

// restarting runs a relay that is stopped now and then.
func restarting(ctx context.Context, t *testing.T, d *dice, s *store, b *broker, bell *outbox.Bell, i int) {
	t.Helper()
	o := outbox.RelayOptions{
		Owner: fmt.Sprint("relay-", i), Bell: bell, BatchSize: 1 + d.n(6), Concurrency: 1 + d.n(12), RunSize: 1 + d.n(8), Lease: stressLease, Margin: stressMargin,
		PublishTimeout: 500 * time.Millisecond, BackoffBase: 10 * time.Millisecond, BackoffMax: time.Second, DrainTimeout: 300 * time.Millisecond,
		Logger: quiet,
	}
	for ctx.Err() == nil {
		r, err := outbox.NewRelay(s, b, &o)
		if err != nil {
			t.Error(err)
			return
		}
		life, end := context.WithTimeout(ctx, d.upTo(20*time.Second))
		if err := r.Run(life); err != nil {
			t.Error(err)
		}
		end()
	}
}
