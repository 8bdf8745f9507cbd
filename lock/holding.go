package lock

import "context"

// holding is what a lease has put into a context.
type holding struct {
	lease *Lease
	outer *holding
}

type holdingKey struct{}

func holdingOf(ctx context.Context) *holding {
	h, _ := ctx.Value(holdingKey{}).(*holding)
	return h
}

// holds says whether ctx descends from the context of a lease of l's that holds the key.
func (l *Locker) holds(ctx context.Context, key Digest) bool {
	for h := holdingOf(ctx); h != nil; h = h.outer {
		if h.lease.locker == l && h.lease.digest == key && h.lease.over() == nil {
			return true
		}
	}
	return false
}
