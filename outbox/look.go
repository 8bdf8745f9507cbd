package outbox

import (
	"context"
	"time"

	"caskeleton.dev/internal/backoff"
	"caskeleton.dev/internal/failpoint"
)

const (
	soonest   = time.Millisecond       // the shortest sleep to a due time
	missBase  = 2 * time.Millisecond   // the first wait for a lane that is due and yet cannot be claimed: someone has its row locked
	missLimit = 100 * time.Millisecond // the longest
)

// looker claims lanes and starts their delivery. One goroutine runs it.
type looker struct {
	*Relay
	deliverer *deliverer
	slots     *slots
	store     *pause
	health    health
	floor     floor

	due    bool      // look as soon as there is room
	wake   time.Time // look then at the latest; zero means that the store must be asked for the next due time
	misses int       // looks in a row that found nothing although something was due
}

func newLooker(r *Relay, st *settler) *looker {
	return &looker{
		Relay: r, deliverer: &deliverer{Relay: r, settler: st, broker: newPause(&r.opts)}, slots: st.slots,
		store: newPause(&r.opts), health: health{log: r.opts.Logger, call: "claim"}, due: true,
	}
}

// run looks until ctx is done, and returns when nothing is being published any more. work outlives ctx.
func (l *looker) run(ctx, work context.Context) {
	for ctx.Err() == nil {
		limit, hold := l.room()
		switch {
		case limit <= 0:
			l.wait(ctx, nil)
		case hold > 0:
			l.sleep(ctx, hold)
		case l.due:
			l.look(ctx, work, limit)
		case l.wake.IsZero():
			l.plan(ctx)
		case time.Until(l.wake) > 0:
			l.sleep(ctx, time.Until(l.wake))
		default:
			l.due, l.wake = true, time.Time{}
		}
	}
	l.deliverer.publishing.Wait()
}

// room returns how many lanes may be claimed, and how long not even those.
func (l *looker) room() (limit int, hold time.Duration) {
	limit = min(l.opts.BatchSize, l.opts.Concurrency-l.slots.taken())
	down, doubtful := l.deliverer.broker.left()
	if doubtful {
		limit = min(limit, 1-l.slots.taken()) // one lane finds out whether the broker is back
	}
	failing, _ := l.store.left()
	return limit, max(down, failing)
}

// look claims up to limit lanes.
func (l *looker) look(ctx, work context.Context, limit int) {
	start := time.Now()
	r := ClaimRequest{
		Owner: l.opts.Owner, Limit: limit, RunSize: l.opts.RunSize, Lease: l.opts.Lease,
		Rung: l.rung(), Floor: l.floor.next(start),
	}
	claims, err := l.claim(work, r)
	l.metrics.claimed(work, time.Since(start))
	ok := l.works(work, err)
	if len(claims) > 0 {
		failpoint.Hit(failpoint.AfterClaim)
	}
	l.deliverer.deliver(ctx, work, claims, start, ok)
	if !ok {
		return
	}
	// What a bell named may have taken half of the limit in vain.
	full := len(claims) >= limit || len(r.Rung) > 0 && len(claims) >= limit/2
	l.floor.learn(claims, full, len(r.Rung) > 0)
	l.due = full
	if len(claims) > 0 {
		l.misses = 0
	} else {
		l.misses++
	}
}

// rung returns whom the bell rang for, and takes its signal back first: this is the look it asks for.
func (l *looker) rung() []Lane {
	select {
	case <-l.opts.Bell.C():
	default:
	}
	return l.opts.Bell.Drain()
}

// claim is not cut short by the end of the relay, so that what it leases can be given back; but when its answer comes too late for a
// publish, it is of no use.
func (l *looker) claim(work context.Context, r ClaimRequest) ([]Claim, error) {
	ctx, cancel := context.WithTimeout(work, l.opts.Lease-l.opts.Margin-l.opts.PublishTimeout)
	defer cancel()
	return l.driver.Claim(ctx, r)
}

// plan asks the store when the next lane is due.
func (l *looker) plan(ctx context.Context) {
	in, ok, err := l.next(ctx)
	sleep := backoff.Jitter(l.opts.PollInterval, 4)
	switch {
	case !l.works(ctx, err) || !ok:
		l.misses = 0
	case in > 0:
		l.misses = 0
		sleep = min(sleep, max(in, soonest))
	case l.misses > 0:
		sleep = min(sleep, backoff.Bound(missBase, missLimit, l.misses))
	default:
		sleep = 0
	}
	l.wake = time.Now().Add(sleep)
}

func (l *looker) next(ctx context.Context) (time.Duration, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	in, _, ok, err := l.driver.NextDue(ctx)
	return in, ok, err
}

// works notes the outcome of a call of the store, and reports whether there is one.
func (l *looker) works(ctx context.Context, err error) bool {
	if err != nil && ctx.Err() != nil {
		return false // cut short by the end of the relay, which says nothing
	}
	l.health.note(ctx, err)
	if err != nil {
		l.store.trip()
		return false
	}
	l.store.succeeded()
	return true
}

func (l *looker) sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	l.wait(ctx, t.C)
}

// wait returns when there may be something to do.
func (l *looker) wait(ctx context.Context, timer <-chan time.Time) {
	select {
	case <-ctx.Done():
	case <-timer:
	case <-l.opts.Bell.C():
		l.due = true
	case <-l.slots.freed:
		// Lanes may be due soon: where an append was open, or an event failed.
		a := l.slots.todo()
		l.due = l.due || a.look
		if a.ask {
			l.wake = time.Time{}
		}
	}
}
