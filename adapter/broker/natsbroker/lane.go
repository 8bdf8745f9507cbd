package natsbroker

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"caskeleton.dev/inbox"
	"caskeleton.dev/outbox"
)

// delivery is a message that this process holds.
type delivery struct {
	message inbox.Message
	seq     uint64 // its place in the stream
	retries int    // how often it failed here, since the broker delivered it
	running bool
	// raw is what acknowledgements go through: the latest delivery, where the broker has delivered it again meanwhile.
	raw atomic.Pointer[jetstream.Msg]
}

func (d *delivery) broker() jetstream.Msg { return *d.raw.Load() }

// attempts counts the deliveries and the tries that needed none.
func (d *delivery) attempts() int { return d.message.Deliveries + d.retries }

// gather is how long a lane that begins with a redelivery waits for others. The broker redelivers in no certain order: what it finds no
// taker for goes to the end of its queue.
const gather = 100 * time.Millisecond

// lane has the deliveries of one aggregate, in the stream's order. Only the first of them runs.
type lane struct {
	queue  []*delivery
	until  time.Time // nothing starts before
	absent uint64    // the first one was given back and is waited for until then, so that none overtakes it
}

// lanes are all deliveries that this process holds. Not safe for concurrent use.
type lanes struct {
	byKey map[outbox.Lane]*lane
	bySeq map[uint64]*delivery
	ready []outbox.Lane // lanes that may start, in the order in which they became so; checked again when taken
}

func newLanes() *lanes {
	return &lanes{byKey: map[outbox.Lane]*lane{}, bySeq: map[uint64]*delivery{}}
}

func keyOf(d *delivery) outbox.Lane {
	return outbox.Lane{AggregateType: d.message.AggregateType, AggregateID: d.message.AggregateID}
}

// add takes a delivery in at its place. One that is here already has been delivered again, because its heartbeat was lost.
func (l *lanes) add(d *delivery, now time.Time) {
	if held := l.bySeq[d.seq]; held != nil {
		held.raw.Store(d.raw.Load())
		return
	}
	l.bySeq[d.seq] = d
	key := keyOf(d)
	ln := l.byKey[key]
	if ln == nil {
		ln = &lane{}
		l.byKey[key] = ln
		if d.message.Deliveries > 1 {
			ln.until = now.Add(gather)
		}
	}
	at, _ := slices.BinarySearchFunc(ln.queue, d.seq, func(d *delivery, seq uint64) int { return cmp.Compare(d.seq, seq) })
	if at == 0 && len(ln.queue) > 0 && ln.queue[0].running {
		at = 1 // too late to go first
	}
	ln.queue = slices.Insert(ln.queue, at, d)
	if ln.absent != 0 && d.seq <= ln.absent {
		ln.absent, ln.until = 0, time.Time{}
	}
	l.ready = append(l.ready, key)
}

// start returns the next delivery to run, nil if there is none at the moment.
func (l *lanes) start(now time.Time) *delivery {
	for len(l.ready) > 0 {
		ln := l.byKey[l.ready[0]]
		l.ready = l.ready[1:]
		if ln == nil || len(ln.queue) == 0 || ln.queue[0].running || now.Before(ln.until) {
			continue
		}
		ln.absent, ln.until = 0, time.Time{}
		ln.queue[0].running = true
		return ln.queue[0]
	}
	return nil
}

// wake makes the lanes ready whose time has come, and returns the time of the next one.
func (l *lanes) wake(now time.Time) (next time.Time) {
	for key, ln := range l.byKey {
		switch {
		case ln.until.IsZero():
		case !now.Before(ln.until):
			ln.until = time.Time{}
			if l.drop(key); len(ln.queue) > 0 {
				l.ready = append(l.ready, key)
			}
		case next.IsZero() || ln.until.Before(next):
			next = ln.until
		}
	}
	return next
}

// retry leaves a delivery that failed at the head of its lane until the given time. Its next run is one attempt more where this one counts.
func (l *lanes) retry(d *delivery, until time.Time, counts bool) {
	d.running = false
	if counts {
		d.retries++
	}
	l.byKey[keyOf(d)].until = until
}

// finish removes a delivery that the broker will not deliver again.
func (l *lanes) finish(d *delivery) {
	key := keyOf(d)
	l.remove(d)
	l.ready = append(l.ready, key)
	l.drop(key)
}

// giveBack removes a delivery that the broker will deliver again. What comes after it waits until the given time at most.
func (l *lanes) giveBack(d *delivery, until time.Time) {
	l.remove(d)
	ln := l.byKey[keyOf(d)]
	ln.absent, ln.until = d.seq, until
}

func (l *lanes) remove(d *delivery) {
	delete(l.bySeq, d.seq)
	ln := l.byKey[keyOf(d)]
	ln.queue = slices.DeleteFunc(ln.queue, func(q *delivery) bool { return q == d })
}

// drop forgets a lane with nothing in it and nothing to wait for.
func (l *lanes) drop(key outbox.Lane) {
	if ln := l.byKey[key]; len(ln.queue) == 0 && ln.until.IsZero() {
		delete(l.byKey, key)
	}
}

// idle removes and returns the deliveries that nothing running comes before, in the stream's order.
func (l *lanes) idle() []*delivery {
	var all []*delivery
	for key, ln := range l.byKey {
		if len(ln.queue) > 0 && ln.queue[0].running {
			continue
		}
		all = append(all, ln.queue...)
		delete(l.byKey, key)
	}
	for _, d := range all {
		delete(l.bySeq, d.seq)
	}
	slices.SortFunc(all, func(a, b *delivery) int { return cmp.Compare(a.seq, b.seq) })
	return all
}
