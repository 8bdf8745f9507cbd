package locktest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/locktest"
)

// memory is a store of locks: the smallest that keeps the promises, but for one bug at a time.
type memory struct {
	bug   string
	pool  chan struct{} // its connections
	ended chan struct{} // closed with the test

	mu     sync.Mutex
	rows   map[string]row
	calls  int
	marked map[string]bool        // keys that were contended once
	gone   map[lock.Token]bool    // tokens that were released
	rings  []chan lock.Digest     // of those who listen
	seen   map[string]lock.Holder // what looks found first
	racers int                    // calls that have checked and will write
	all    chan struct{}          // closed when there are many of them
}

type row struct {
	token, last  lock.Token // the holder, and who held it before
	since, until time.Time
	passed       bool // by Expire
	contended    bool
}

// node is one driver on a store.
type node struct {
	*memory

	name string
}

// newStore returns a store with the bug, "" for none.
func newStore(t *testing.T, bug string) locktest.Store {
	t.Helper()
	m := &memory{
		bug: bug, pool: make(chan struct{}, 2), ended: make(chan struct{}), rows: map[string]row{}, marked: map[string]bool{}, gone: map[lock.Token]bool{},
		seen: map[string]lock.Holder{}, all: make(chan struct{}),
	}
	t.Cleanup(func() { close(m.ended) })
	a := node{m, "a"}
	s := locktest.Store{Driver: a, Other: node{m, "b"}, Expire: a.expire}
	if bug != "" {
		s = locktest.Hasty(s)
	}
	return s
}

func (n node) is(bug string) bool { return n.bug == bug }

// nth is true for each nth call with it, if the bug is there. It is called with mu held.
func (n node) nth(i int, bug string) bool {
	if n.bug != bug {
		return false
	}
	n.calls++
	return n.calls%i == 0
}

func (n node) id(k lock.Key) string {
	region, name := k.Region+"\x00", k.Name
	switch n.bug {
	case "a node has its own keys":
		region += n.name
	case "folds case":
		name = strings.ToLower(name)
	case "compares 200 characters":
		name = name[:min(200, len(name))]
	case "trims":
		name = strings.TrimSpace(name)
	case "ignores the region":
		region = ""
	case "joins region and name":
		region = k.Region
	case "replaces invalid UTF-8":
		name = strings.ToValidUTF8(name, "\uFFFD")
	}
	return region + name
}

// enter waits for a connection; leave gives it back.
func (n node) enter(ctx context.Context) (leave func(), err error) {
	if n.is("does not heed the context") {
		ctx = context.WithoutCancel(ctx)
	}
	if ctx.Err() == nil {
		select {
		case n.pool <- struct{}{}:
			n.mu.Lock()
			return func() { n.mu.Unlock(); <-n.pool }, nil
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

// holder is called with mu held.
func (n node) holder(id string, now time.Time) (row, lock.Holder) {
	r, ok := n.rows[id]
	left := r.until.Sub(now)
	if n.is("a lease never passes") {
		r.passed, left = false, max(left, time.Second)
	}
	if !ok || r.passed || left <= 0 {
		return r, lock.Holder{}
	}
	return r, lock.Holder{Held: true, Left: left, Contended: r.contended}
}

func (n node) Acquire(ctx context.Context, k lock.Key, token lock.Token, lease time.Duration, waiting bool) (lock.Holder, error) {
	id := n.id(k)
	leave, err := n.enter(ctx)
	if err != nil {
		if n.is("grants after it was cut off") {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.rows[id] = row{token: lock.Token{1}, since: time.Now(), until: time.Now().Add(lease)}
		}
		return lock.Holder{}, err
	}
	defer leave()
	now := time.Now()
	r, h := n.holder(id, now)
	switch {
	case n.is("a waiter does not take over") && waiting && r.passed:
		h = lock.Holder{Held: true, Left: time.Second}
	case n.is("the asker's lease decides") && r.since.Add(lease).Before(now):
		h = lock.Holder{}
	case h.Held && (n.is("lets anyone in") || n.nth(5, "now and then two get in")):
		return lock.Holder{}, nil
	case h.Held && n.nth(7, "now and then grants what is held"):
		h = lock.Holder{}
	}
	if h.Held {
		return n.refuse(ctx, id, r, h, token, waiting, now.Add(lease))
	}
	if n.is("checks and then writes") {
		n.race()
	}
	if n.is("overflows") && lease == n.MaxLease() {
		lease = 0
	}
	if n.is("forgets short leases") {
		lease = max(lease, time.Hour)
	}
	n.rows[id] = row{token: token, last: r.token, since: now, until: now.Add(lease), contended: n.is("keeps the mark") && n.marked[id]}
	return lock.Holder{}, nil
}

// refuse answers one who cannot have the key. It is called with mu held.
func (n node) refuse(ctx context.Context, id string, r row, h lock.Holder, token lock.Token, waiting bool, until time.Time) (lock.Holder, error) {
	if waiting && n.is("a waiter holds a connection") {
		for h.Held && ctx.Err() == nil {
			n.mu.Unlock()
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
			n.mu.Lock()
			_, h = n.holder(id, time.Now())
		}
		return lock.Holder{Held: true, Left: time.Millisecond, Contended: true}, ctx.Err()
	}
	switch n.bug {
	case "contention is an error":
		return lock.Holder{}, fault.New(fault.DBSerializationFailure, "memory.Acquire", nil)
	case "a try takes the key away":
		r.token = token
	case "a try extends the lease":
		r.until = until
	}
	if waiting && !n.is("never marks") || n.is("marks for anyone") {
		r.contended, h.Contended, n.marked[id] = true, true, true
	}
	n.rows[id] = r
	return h, nil
}

// race lets others check before the caller writes. It is called with mu held.
func (n node) race() {
	n.racers++
	if n.racers == 2 {
		close(n.all)
	}
	n.mu.Unlock()
	select {
	case <-n.all:
	case <-time.After(50 * time.Millisecond):
	}
	n.mu.Lock()
}

func (n node) Look(ctx context.Context, k lock.Key) (lock.Holder, error) {
	leave, err := n.enter(ctx)
	if err != nil {
		return lock.Holder{}, err
	}
	defer leave()
	id := n.id(k)
	r, h := n.holder(id, time.Now())
	if n.is("a look shows who has passed") && r.passed {
		h = lock.Holder{Held: true, Left: time.Second}
	}
	if n.is("remembers what it saw") {
		if old, ok := n.seen[id]; ok {
			return old, nil
		}
		n.seen[id] = h
	}
	return h, nil
}

func (n node) Renew(ctx context.Context, k lock.Key, token lock.Token, lease time.Duration) (bool, error) {
	leave, err := n.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	id, now := n.id(k), time.Now()
	r, h := n.holder(id, now)
	if n.nth(2, "now and then loses a lease") {
		delete(n.rows, id)
		return h.Held && r.token == token, nil
	}
	switch {
	case n.is("revives a lease") && r.token == token:
		r.passed = false
	case n.is("renews for anyone") && h.Held:
	case !h.Held || r.token != token:
		return false, nil
	}
	if !n.is("never shortens") || now.Add(lease).After(r.until) {
		r.until = now.Add(lease)
	}
	if n.is("a renewal forgets the waiter") {
		r.contended = false
	}
	if !n.is("does not renew") {
		n.rows[id] = r
	}
	return true, nil
}

func (n node) Release(ctx context.Context, k lock.Key, token lock.Token) (lock.Freed, error) {
	leave, err := n.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	id := n.id(k)
	r, h := n.holder(id, time.Now())
	_, kept := n.rows[id]
	switch {
	case !kept && n.is("releases what nobody held"), n.gone[token] && n.is("releases twice"):
		return lock.Released, nil
	case kept && r.token != token && n.is("now and then a release frees what is another's"), kept && r.last == token && n.is("a late release frees the next one's"):
		delete(n.rows, id)
		return lock.Lost, nil
	case !kept, r.token != token && !n.is("releases by key"):
		return lock.Lost, nil
	}
	n.gone[token] = true
	if !n.is("a release says Released, and keeps the key") {
		delete(n.rows, id)
	}
	if (r.contended || n.is("announces every release")) && !n.is("announces nothing") {
		d := k.Digest()
		if n.is("announces another key") {
			d[0]++
		}
		for _, ring := range n.rings {
			select {
			case ring <- d:
			default:
			}
		}
	}
	if h.Held || n.is("a late release is silent") {
		return lock.Released, nil
	}
	return lock.Expired, nil
}

func (n node) MaxLease() time.Duration { return 1000 * time.Hour }

func (n node) Listen(ctx context.Context, ready func(), ring func(lock.Digest)) error {
	rings := make(chan lock.Digest, 100)
	n.mu.Lock()
	n.rings = append(n.rings, rings)
	n.mu.Unlock()
	if !n.is("is never ready") {
		ready()
	}
	end := ctx.Done()
	if n.is("listens for ever") {
		end = n.ended
	}
	for {
		select {
		case d := <-rings:
			ring(d)
		case <-end:
			if n.is("listening ends without an error") {
				return nil
			}
			return errors.New("memory: the end")
		}
	}
}

func (n node) expire(_ context.Context, k lock.Key) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r, ok := n.rows[n.id(k)]; ok {
		r.passed = true
		n.rows[n.id(k)] = r
	}
	return nil
}
