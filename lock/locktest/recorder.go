package locktest

import (
	"context"
	"time"

	"caskeleton.dev/internal/testkit/history"
	"caskeleton.dev/lock"
)

// recorder is a driver that notes what is asked and answered.
type recorder struct {
	lock.Driver

	history *history.History[event]
}

// hearing is a recorder of a driver that is a Listener.
type hearing struct {
	recorder
	lock.Listener
}

func record(d lock.Driver, h *history.History[event]) lock.Driver {
	r := recorder{d, h}
	if l, ok := d.(lock.Listener); ok {
		return hearing{r, l}
	}
	return r
}

// tokenKey is where a caller of Locker.Acquire hears which token its lease has.
type tokenKey struct{}

func (r recorder) Acquire(ctx context.Context, k lock.Key, t lock.Token, lease time.Duration, waiting bool) (lock.Holder, error) {
	call := r.history.Now()
	h, err := r.Driver.Acquire(ctx, k, t, lease, waiting)
	if own, ok := ctx.Value(tokenKey{}).(*lock.Token); ok {
		*own = t
	}
	r.history.Add(event{kind: acquire, key: k.Name, token: t, lease: lease, call: call, ret: r.history.Now(), failed: err != nil, got: !h.Held})
	return h, err
}

func (r recorder) Look(ctx context.Context, k lock.Key) (lock.Holder, error) {
	call := r.history.Now()
	h, err := r.Driver.Look(ctx, k)
	r.history.Add(event{kind: look, key: k.Name, call: call, ret: r.history.Now(), failed: err != nil, got: h.Held})
	return h, err
}

func (r recorder) Renew(ctx context.Context, k lock.Key, t lock.Token, lease time.Duration) (bool, error) {
	call := r.history.Now()
	got, err := r.Driver.Renew(ctx, k, t, lease)
	r.history.Add(event{kind: renew, key: k.Name, token: t, lease: lease, call: call, ret: r.history.Now(), failed: err != nil, got: got})
	return got, err
}

func (r recorder) Release(ctx context.Context, k lock.Key, t lock.Token) (lock.Freed, error) {
	call := r.history.Now()
	freed, err := r.Driver.Release(ctx, k, t)
	r.history.Add(event{kind: release, key: k.Name, token: t, call: call, ret: r.history.Now(), failed: err != nil, freed: freed})
	return freed, err
}
