package memory

import (
	"context"
	"sync"
	"time"

	"caskeleton.dev/lock"
)

// sweepAt is how many leases are kept before those that have passed are looked for.
const sweepAt = 1024

// LocksOptions configure [Locks]. The zero value is the default.
type LocksOptions struct {
	Now func() time.Time // the clock of the leases; nil means time.Now
}

// Locks is a [lock.Driver] and [lock.Listener] that keeps leases in this process. Its lockers exclude each other. Safe for concurrent use.
type Locks struct {
	now func() time.Time

	mu        sync.Mutex
	leases    map[lock.Digest]lease
	sweep     int // leases that the next sweep waits for
	listeners map[*func(lock.Digest)]struct{}
}

type lease struct {
	token     lock.Token
	until     time.Time
	contended bool
}

// NewLocks returns a driver that holds nothing.
func NewLocks(o *LocksOptions) *Locks {
	d := &Locks{now: time.Now, leases: map[lock.Digest]lease{}, sweep: sweepAt, listeners: map[*func(lock.Digest)]struct{}{}}
	if o != nil && o.Now != nil {
		d.now = o.Now
	}
	return d
}

// holder returns who holds a key. It is called with mu held.
func (d *Locks) holder(key lock.Digest, now time.Time) (lease, lock.Holder) {
	l := d.leases[key]
	left := l.until.Sub(now)
	if left <= 0 {
		return l, lock.Holder{}
	}
	return l, lock.Holder{Held: true, Left: left, Contended: l.contended}
}

// Acquire implements [lock.Driver].
func (d *Locks) Acquire(ctx context.Context, k lock.Key, token lock.Token, length time.Duration, waiting bool) (lock.Holder, error) {
	if err := ctx.Err(); err != nil {
		return lock.Holder{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key, now := k.Digest(), d.now()
	l, h := d.holder(key, now)
	if h.Held {
		if waiting {
			l.contended, h.Contended = true, true
			d.leases[key] = l
		}
		return h, nil
	}
	d.leases[key] = lease{token: token, until: now.Add(length)}
	if len(d.leases) > d.sweep {
		for key, l := range d.leases {
			if !l.until.After(now) {
				delete(d.leases, key)
			}
		}
		d.sweep = max(sweepAt, 2*len(d.leases))
	}
	return lock.Holder{}, nil
}

// Look implements [lock.Driver].
func (d *Locks) Look(ctx context.Context, k lock.Key) (lock.Holder, error) {
	if err := ctx.Err(); err != nil {
		return lock.Holder{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, h := d.holder(k.Digest(), d.now())
	return h, nil
}

// Renew implements [lock.Driver].
func (d *Locks) Renew(ctx context.Context, k lock.Key, token lock.Token, length time.Duration) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key, now := k.Digest(), d.now()
	l, h := d.holder(key, now)
	if !h.Held || l.token != token {
		return false, nil
	}
	l.until = now.Add(length)
	d.leases[key] = l
	return true, nil
}

// Release implements [lock.Driver].
func (d *Locks) Release(ctx context.Context, k lock.Key, token lock.Token) (lock.Freed, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := k.Digest()
	l, h := d.holder(key, d.now())
	if _, kept := d.leases[key]; !kept || l.token != token {
		return lock.Lost, nil
	}
	delete(d.leases, key)
	if l.contended {
		for ring := range d.listeners {
			(*ring)(key)
		}
	}
	if !h.Held {
		return lock.Expired, nil
	}
	return lock.Released, nil
}

// MaxLease implements [lock.Driver]: a hundred years of 365 days.
func (d *Locks) MaxLease() time.Duration { return 100 * 365 * 24 * time.Hour }

// Listen implements [lock.Listener]. It ends with ctx only.
func (d *Locks) Listen(ctx context.Context, ready func(), ring func(lock.Digest)) error {
	d.mu.Lock()
	d.listeners[&ring] = struct{}{}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.listeners, &ring)
	}()
	ready()
	<-ctx.Done()
	return ctx.Err()
}
