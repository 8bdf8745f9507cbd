package lock

import (
	"slices"
	"sync"
)

// lines are the waiters of a process, a line for each key that has any.
type lines struct {
	mu    sync.Mutex
	byKey map[Digest]*line
}

// line is the queue for one key. Its head asks the store; the others wait until they are the head.
type line struct {
	queue []*place
	bell  chan struct{} // holds a ring that the head has not heard yet
}

// place is a waiter's in a line.
type place struct {
	lines *lines
	key   Digest
	line  *line
	head  chan struct{} // closed once the place is the head of its line; nil if it was from the start
}

// enter joins the line of a key.
func (ls *lines) enter(key Digest) *place {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ln := ls.byKey[key]
	if ln == nil {
		ln = &line{bell: make(chan struct{}, 1)}
		ls.byKey[key] = ln
	}
	p := &place{lines: ls, key: key, line: ln}
	if len(ln.queue) > 0 {
		p.head = make(chan struct{})
	}
	ln.queue = append(ln.queue, p)
	return p
}

// leave makes the next one the head, where the head leaves. Rings that nobody heard are of no use to it: it begins by asking the store.
func (p *place) leave() {
	p.lines.mu.Lock()
	defer p.lines.mu.Unlock()
	i := slices.Index(p.line.queue, p)
	p.line.queue = slices.Delete(p.line.queue, i, i+1)
	switch {
	case len(p.line.queue) == 0:
		delete(p.lines.byKey, p.key)
	case i == 0:
		close(p.line.queue[0].head)
	}
}

// ring tells the head of a key's line, if there is one, that the key may be free. It never blocks.
func (ls *lines) ring(key Digest) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.byKey[key].ring()
}

// ringAll rings for every key.
func (ls *lines) ringAll() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, ln := range ls.byKey {
		ln.ring()
	}
}

func (ln *line) ring() {
	if ln == nil {
		return
	}
	select {
	case ln.bell <- struct{}{}:
	default:
	}
}
