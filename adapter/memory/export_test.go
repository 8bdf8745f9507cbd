package memory

import (
	"errors"
	"sync"

	"caskeleton.dev/lock"
	"caskeleton.dev/tx"
)

// Set is the smallest store that rides a transaction of Transactions.
type Set struct {
	mu   sync.Mutex
	keys map[string]bool // whether others see it
}

// NewSet returns a set of no keys.
func NewSet() *Set { return &Set{keys: map[string]bool{}} }

// Has reports whether a key is there for everybody.
func (s *Set) Has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}

// Put adds a key that is not there.
func (s *Set) Put(c tx.Conn, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := c.(*session)
	change := func(do func()) func() {
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			do()
		}
	}
	if _, there := s.keys[key]; there {
		return in.fail(errors.New("the key is there"))
	}
	err := in.add("memory.Put", step{change(func() { s.keys[key] = true }), change(func() { delete(s.keys, key) })})
	if err == nil {
		s.keys[key] = false
	}
	return err
}

// Expire has the lease of whoever holds k pass, for the suite.
func (d *Locks) Expire(k lock.Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l, ok := d.leases[k.Digest()]; ok {
		l.until = d.now()
		d.leases[k.Digest()] = l
	}
}

// Len returns how many leases are kept, those that have passed among them.
func (d *Locks) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.leases)
}
