package outbox_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/outbox"
)

func newBell(t *testing.T) *outbox.Bell {
	t.Helper()
	ob, _, _ := newOutbox(t, nil)
	return ob.Bell()
}

func TestRingsCoalesce(t *testing.T) {
	b := newBell(t)
	a, c := outbox.Lane{AggregateType: "o", AggregateID: "a"}, outbox.Lane{AggregateType: "o", AggregateID: "c"}
	b.Ring([]outbox.Lane{a})
	b.Ring([]outbox.Lane{c, a})
	require.Len(t, b.C(), 1)
	<-b.C()
	require.Equal(t, []outbox.Lane{a, c}, b.Drain())
	require.Empty(t, b.Drain())
	b.Ring([]outbox.Lane{a})
	require.Len(t, b.C(), 1)
	require.Equal(t, []outbox.Lane{a}, b.Drain(), "what was drained may be rung again")
}

// TestABellWithoutAListenerIsBounded, and neither blocks nor forgets to wake.
func TestABellWithoutAListenerIsBounded(t *testing.T) {
	b := newBell(t)
	for i := range 3000 {
		b.Ring([]outbox.Lane{{AggregateType: "o", AggregateID: fmt.Sprint(i)}})
	}
	require.Len(t, b.Drain(), 1024)
	require.Len(t, b.C(), 1)
	<-b.C()
	b.Ring(nil)
	require.Len(t, b.C(), 1)
}

// TestNoRingIsLost: after the last ring the listener finds the signal, the lanes, or both.
func TestNoRingIsLost(t *testing.T) {
	b := newBell(t)
	var ringing sync.WaitGroup
	for w := range 4 {
		ringing.Go(func() {
			for i := range 200 {
				b.Ring([]outbox.Lane{{AggregateType: fmt.Sprint(w), AggregateID: fmt.Sprint(i)}})
			}
		})
	}
	heard := map[outbox.Lane]bool{}
	rung := make(chan struct{})
	go func() { ringing.Wait(); close(rung) }()
	for open := true; open; {
		select {
		case <-b.C():
		case <-rung:
			open = false
		}
		for _, l := range b.Drain() {
			heard[l] = true
		}
	}
	require.Len(t, heard, 800)
}
