package locktest

import (
	"context"
	"sync"
	"time"

	"caskeleton.dev/lock"
)

// Apart returns s with its keys in regions that begin with prefix, which only keys of s do. Checks then share what is dear to make, such as a database.
func Apart(s Store, prefix string) Store {
	a, expire := &apart{prefix: prefix}, s.Expire
	s.Driver, s.Other = a.driver(s.Driver), a.driver(s.Other)
	s.Expire = func(ctx context.Context, k lock.Key) error { return expire(ctx, a.key(k)) }
	return s
}

type apart struct {
	prefix string
	inner  sync.Map // digests that a check knows, by those that the store knows
}

func (a *apart) key(k lock.Key) lock.Key { return lock.Key{Region: a.prefix + k.Region, Name: k.Name} }

func (a *apart) driver(d lock.Driver) lock.Driver {
	in := inRegion{d, a}
	if l, ok := d.(lock.Listener); ok {
		return listening{in, l}
	}
	return in
}

type inRegion struct {
	lock.Driver

	apart *apart
}

func (d inRegion) Acquire(ctx context.Context, k lock.Key, t lock.Token, lease time.Duration, waiting bool) (lock.Holder, error) {
	outer := d.apart.key(k)
	d.apart.inner.Store(outer.Digest(), k.Digest())
	return d.Driver.Acquire(ctx, outer, t, lease, waiting)
}

func (d inRegion) Look(ctx context.Context, k lock.Key) (lock.Holder, error) {
	return d.Driver.Look(ctx, d.apart.key(k))
}

func (d inRegion) Renew(ctx context.Context, k lock.Key, t lock.Token, lease time.Duration) (bool, error) {
	return d.Driver.Renew(ctx, d.apart.key(k), t, lease)
}

func (d inRegion) Release(ctx context.Context, k lock.Key, t lock.Token) (lock.Freed, error) {
	return d.Driver.Release(ctx, d.apart.key(k), t)
}

// listening is inRegion of a driver that is a Listener.
type listening struct {
	inRegion

	listener lock.Listener
}

func (d listening) Listen(ctx context.Context, ready func(), ring func(lock.Digest)) error {
	return d.listener.Listen(ctx, ready, func(outer lock.Digest) {
		if inner, ok := d.apart.inner.Load(outer); ok {
			ring(inner.(lock.Digest)) //nolint:errcheck // nothing else is stored
		}
	})
}
