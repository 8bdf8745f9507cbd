package outbox

import "sync"

// maxRung bounds the lanes that a bell remembers. Those beyond are found by their due time, a little later.
const maxRung = 1024

// Bell tells the relay of this process which lanes have just got something to deliver. It coalesces, so that it never makes a committer
// wait and never grows, listener or not. It is a hint: a relay also polls. One relay may listen; ringing is safe for concurrent use.
type Bell struct {
	signal chan struct{}

	mu    sync.Mutex
	order []Lane // as they were rung
	rung  map[Lane]bool
}

// NewBell returns a bell that has not rung.
func NewBell() *Bell { return &Bell{signal: make(chan struct{}, 1), rung: map[Lane]bool{}} }

// Ring notes lanes and wakes the listener. It never blocks.
func (b *Bell) Ring(lanes []Lane) {
	b.mu.Lock()
	for _, l := range lanes {
		if len(b.order) == maxRung {
			break
		}
		if !b.rung[l] {
			b.rung[l] = true
			b.order = append(b.order, l)
		}
	}
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default: // it has not heard the last one yet
	}
}

// C is received from once, or more rarely, for each ring. [Bell.Drain] says for whom it was; it may be empty.
func (b *Bell) C() <-chan struct{} { return b.signal }

// Drain returns the lanes that were rung since the last call, each once, and forgets them.
func (b *Bell) Drain() []Lane {
	b.mu.Lock()
	defer b.mu.Unlock()
	lanes := b.order
	b.order = nil
	clear(b.rung)
	return lanes
}
