package natsbroker

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"caskeleton.dev/inbox"
)

func held(aggregate string, seq uint64) *delivery {
	d := &delivery{message: inbox.Message{AggregateID: aggregate, Deliveries: 1}, seq: seq}
	var raw jetstream.Msg
	d.raw.Store(&raw)
	return d
}

func TestALaneKeepsItsOrder(t *testing.T) {
	now := time.Now()
	l := newLanes()
	for _, d := range []*delivery{held("a", 1), held("a", 2), held("b", 3), held("a", 4)} {
		l.add(d, time.Now())
	}
	a1, b3 := l.start(now), l.start(now)
	require.Equal(t, uint64(1), a1.seq)
	require.Equal(t, uint64(3), b3.seq)
	require.Nil(t, l.start(now), "one at a time")

	l.retry(a1, now.Add(time.Second), true)
	require.Equal(t, now.Add(time.Second), l.wake(now))
	require.Nil(t, l.start(now), "nothing overtakes one that failed")
	l.add(held("a", 1), now) // delivered again meanwhile
	require.Nil(t, l.start(now), "which does not shorten its delay")
	l.wake(now.Add(time.Second))
	require.Same(t, a1, l.start(now.Add(time.Second)))
	require.Equal(t, 2, a1.attempts())

	l.giveBack(a1, now.Add(time.Minute))
	require.Equal(t, now.Add(time.Minute), l.wake(now))
	require.Nil(t, l.start(now), "what comes after it waits")
	l.add(held("a", 1), now)
	back := l.start(now)
	require.Equal(t, uint64(1), back.seq, "until it is back")
	l.finish(back)
	require.Equal(t, uint64(2), l.start(now).seq)

	l.giveBack(b3, now.Add(time.Minute))
	l.add(held("b", 5), now)
	require.Nil(t, l.start(now))
	require.Zero(t, l.wake(now.Add(time.Minute)))
	require.Equal(t, uint64(5), l.start(now.Add(time.Minute)).seq, "or the time is over: another process has it")
}

func TestRedeliveriesAreSortedBeforeTheyRun(t *testing.T) {
	now := time.Now()
	l := newLanes()
	for _, seq := range []uint64{8, 9, 7} {
		d := held("a", seq)
		d.message.Deliveries = 2
		l.add(d, now)
		require.Nil(t, l.start(now))
	}
	require.Equal(t, now.Add(gather), l.wake(now))
	l.wake(now.Add(gather))
	require.Equal(t, uint64(7), l.start(now.Add(gather)).seq)
}

func TestWhatIsIdleIsGivenBackInOrder(t *testing.T) {
	l := newLanes()
	for _, d := range []*delivery{held("a", 1), held("a", 2), held("b", 4), held("c", 3), held("b", 5)} {
		l.add(d, time.Now())
	}
	running := l.start(time.Now())
	seqs := func() (all []uint64) {
		for _, d := range l.idle() {
			all = append(all, d.seq)
		}
		return all
	}
	require.Equal(t, []uint64{3, 4, 5}, seqs(), "what waits behind a running one stays")
	l.finish(running)
	require.Equal(t, []uint64{2}, seqs())
	require.Empty(t, l.byKey)
	require.Empty(t, l.bySeq)
}

// TestLanesProperty plays the broker and the loop at random, and checks after each step what the lanes promise.
func TestLanesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		l := newLanes()
		next := uint64(1)
		running := map[string]*delivery{}
		away := map[uint64]string{} // given back
		done := map[string]uint64{}
		aggregates := rapid.SampledFrom([]string{"a", "b", "c"})
		pick := func() *delivery {
			for _, k := range []string{"a", "b", "c"} {
				if running[k] != nil {
					return running[k]
				}
			}
			return nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"deliver": func(t *rapid.T) { l.add(held(aggregates.Draw(t, "aggregate"), next), now); next++ },
			"again": func(*rapid.T) {
				for seq, k := range away {
					l.add(held(k, seq), now)
					delete(away, seq)
					return
				}
			},
			"start": func(t *rapid.T) {
				l.wake(now)
				d := l.start(now)
				if d == nil {
					return
				}
				k := d.message.AggregateID
				if running[k] != nil {
					t.Fatalf("two of %s at once", k)
				}
				if d.seq <= done[k] {
					t.Fatalf("%d of %s after %d", d.seq, k, done[k])
				}
				running[k] = d
			},
			"finish": func(*rapid.T) {
				if d := pick(); d != nil {
					l.finish(d)
					delete(running, d.message.AggregateID)
					done[d.message.AggregateID] = d.seq
				}
			},
			"fail": func(*rapid.T) {
				if d := pick(); d != nil {
					l.retry(d, now.Add(time.Second), true)
					delete(running, d.message.AggregateID)
				}
			},
			"give back": func(*rapid.T) {
				if d := pick(); d != nil {
					l.giveBack(d, now.Add(time.Hour)) // it is back before
					delete(running, d.message.AggregateID)
					away[d.seq] = d.message.AggregateID
				}
			},
			"later": func(*rapid.T) { now = now.Add(time.Second / 2) },
			"": func(t *rapid.T) {
				held := 0
				for _, ln := range l.byKey {
					held += len(ln.queue)
				}
				if held != len(l.bySeq) {
					t.Fatalf("%d held, %d known", held, len(l.bySeq))
				}
			},
		})
	})
}
