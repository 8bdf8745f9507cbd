package idempotencytest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"caskeleton.dev/idempotency"
	"caskeleton.dev/internal/testkit/history"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx"
)

// HistoryOptions say what [TestHistory] plays. The zero value is the default.
type HistoryOptions struct {
	Workers int // goroutines; 0 means 6
	Rounds  int // operations that each tries; 0 means 150
	Keys    int // 0 means 4
	// Fault, if any, is called again and again while they work, until its context ends: it cuts connections, or stops the store for a while.
	Fault func(ctx context.Context)
}

// player is what the workers share.
type player struct {
	Store

	history *history.History[event]
	scopes  []idempotency.Scope
	ended   atomic.Int32

	mu   sync.Mutex
	dead []idempotency.Claim // of owners that stopped on the way, and may come back
}

func play(ctx context.Context, s Store, o HistoryOptions) {
	for n, standard := range map[*int]int{&o.Workers: 6, &o.Rounds: 150, &o.Keys: 4} {
		if *n == 0 {
			*n = standard
		}
	}
	p := &player{Store: s, history: history.New[event]()}
	for range o.Keys {
		p.scopes = append(p.scopes, newScope())
	}
	around, stop := context.WithCancel(ctx)
	var others, workers sync.WaitGroup
	others.Go(func() { p.time(around) })
	if o.Fault != nil {
		others.Go(func() {
			for around.Err() == nil {
				o.Fault(around)
			}
		})
	}
	for range o.Workers {
		workers.Go(func() {
			for range o.Rounds {
				p.round(ctx)
				if chance(4) {
					p.comesBack(ctx)
				}
				pause(ctx, time.Millisecond)
			}
		})
	}
	workers.Wait()
	stop()
	others.Wait()
	judge(p.history.Events()) // first: what a broken store does may end nothing
	if n := p.ended.Load(); int(n) < o.Workers {
		suite.Fail("%d workers ended %d operations in all: nothing was tested", o.Workers, n)
	}
}

// add records a call that has its answer now.
func (p *player) add(e event) {
	e.ret = p.history.Now()
	p.history.Add(e)
}

// did records a call: that its owner was told to be stale is an answer, any other error is none.
func (p *player) did(e event, err error) bool {
	e.told = err == nil
	e.failed = err != nil && !errors.Is(err, idempotency.ErrStale)
	p.add(e)
	return e.told
}

// round claims a key, as a guard does, and then does what an owner does, or dies on the way.
func (p *player) round(ctx context.Context) {
	r := request(p.scopes[rand.IntN(len(p.scopes))]) //nolint:gosec // any will do
	e := event{what: "claim", scope: r.Scope, call: p.history.Now()}
	e.after = idempotency.Claim{Scope: r.Scope, Owner: r.Owner, Attempt: 1, Operation: r.Operation, Revision: 1}
	rec, made, err := p.Driver.Claim(ctx, r)
	if !made && err == nil {
		e.what, e.after, e.to, e.late, e.answer = "read", rec.Claim, rec.State, rec.LeaseExpired, string(rec.Payload)
	}
	p.did(e, err)
	c := rec.Claim
	switch {
	case err != nil:
		return
	case made:
	case rec.State == idempotency.Claimed && (rec.LeaseExpired || chance(8)):
		if c = p.takeOver(ctx, rec.Claim, r); c.Scope != r.Scope {
			return
		}
	case rec.State == idempotency.Executing && (rec.LeaseExpired || chance(8)):
		p.abandon(ctx, rec.Claim)
		return
	case rec.State == idempotency.Abandoned && chance(5):
		p.settle(ctx, rec.Claim, idempotency.Abandoned)
		return
	default:
		return
	}
	switch rand.IntN(8) { //nolint:gosec // any will do
	case 0:
		p.dies(c)
	case 1:
		p.settle(ctx, c, idempotency.Claimed)
	case 2, 3, 4:
		p.transact(ctx, c)
	default:
		p.execute(ctx, c)
	}
}

func (p *player) takeOver(ctx context.Context, held idempotency.Claim, r idempotency.Request) idempotency.Claim {
	e := event{what: "take over", scope: r.Scope, claim: held, from: idempotency.Claimed, call: p.history.Now()}
	e.after = idempotency.Claim{Scope: r.Scope, Owner: r.Owner, Attempt: held.Attempt + 1, Operation: r.Operation, Revision: held.Revision + 1}
	c, taken, err := p.Driver.TakeOver(ctx, held, r)
	e.told, e.failed = taken, err != nil
	if taken {
		e.after = c
	}
	p.add(e)
	return c
}

func (p *player) abandon(ctx context.Context, c idempotency.Claim) {
	e := event{what: "abandon", scope: c.Scope, claim: c, from: idempotency.Executing, call: p.history.Now()}
	marked, err := p.Driver.Abandon(ctx, c)
	e.told, e.failed = marked, err != nil
	p.add(e)
}

// settle ends what c holds in one of the ways there are.
func (p *player) settle(ctx context.Context, c idempotency.Claim, from idempotency.State) {
	ends := map[idempotency.State][]idempotency.State{
		idempotency.Claimed:   {idempotency.Failed, ""},
		idempotency.Executing: {idempotency.Completed, idempotency.Failed, idempotency.Abandoned},
		idempotency.Abandoned: {idempotency.Completed, ""},
	}[from]
	e := event{what: "settle", scope: c.Scope, claim: c, from: from, to: ends[rand.IntN(len(ends))], call: p.history.Now()} //nolint:gosec // any will do
	var a idempotency.Answer
	if e.to == idempotency.Completed || e.to == idempotency.Failed {
		e.answer = "settled " + c.Operation
		a = inline(e.answer)
	}
	settle := p.Driver.Settle
	if from == idempotency.Abandoned && rand.IntN(2) == 0 { //nolint:gosec // either will do
		settle = p.reconcile
	}
	if p.did(e, settle(ctx, c, from, e.to, a)) {
		p.ended.Add(1)
	}
}

// transact completes in a transaction, or rolls it back.
func (p *player) transact(ctx context.Context, c idempotency.Claim) {
	start := event{what: "start", scope: c.Scope, claim: c, from: idempotency.Claimed, call: p.history.Now()}
	end := start
	end.what, end.answer = "commit", "committed "+c.Operation
	started, completed := false, false
	err := p.Runner.InRootWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
		err := p.Driver.Start(ctx, t, c, nil)
		if err == nil || errors.Is(err, idempotency.ErrStale) {
			started = p.did(start, err)
		}
		end.call = p.history.Now()
		if err != nil {
			return err
		}
		pause(ctx, 2*time.Millisecond)
		err = p.Driver.Complete(ctx, t, c, inline(end.answer))
		if completed = err == nil && !chance(5); err == nil && !completed {
			return errRollback
		}
		return err
	})
	switch {
	case !started:
	case !completed:
		end.what = "rollback" // nothing was to be committed, whatever the error
		p.did(end, nil)
	case err != nil:
		end.failed = true
		p.add(end)
	default:
		p.did(end, nil)
		p.ended.Add(1)
	}
}

func (p *player) execute(ctx context.Context, c idempotency.Claim) {
	e := event{what: "execute", scope: c.Scope, claim: c, from: idempotency.Claimed, after: moved(c), call: p.history.Now()}
	now, err := p.Driver.Execute(ctx, c, lease, nil)
	if !p.did(e, err) {
		return
	}
	pause(ctx, 2*time.Millisecond)
	if chance(3) {
		e := event{what: "renew", scope: c.Scope, claim: now, from: idempotency.Executing, call: p.history.Now()}
		p.did(e, p.Driver.Renew(ctx, now, lease))
	}
	if chance(4) {
		p.dies(now)
		return
	}
	p.settle(ctx, now, idempotency.Executing)
}

func (p *player) dies(c idempotency.Claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = append(p.dead, c)
}

// comesBack has an owner go on that was taken for dead.
func (p *player) comesBack(ctx context.Context) {
	p.mu.Lock()
	n := len(p.dead)
	var c idempotency.Claim
	if n > 0 {
		c = p.dead[rand.IntN(n)] //nolint:gosec // any will do
	}
	p.mu.Unlock()
	if n == 0 {
		return
	}
	switch rand.IntN(4) { //nolint:gosec // any will do
	case 0:
		p.settle(ctx, c, idempotency.Claimed)
	case 1:
		p.settle(ctx, c, idempotency.Executing)
	case 2:
		p.execute(ctx, c)
	default:
		p.takeOver(ctx, c, request(c.Scope))
	}
}

// time has the clock jump, and the reaper work, now and then.
func (p *player) time(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, time.Millisecond)
		call := p.history.Now()
		var what string
		var err error
		switch rand.IntN(3) { //nolint:gosec // any will do
		case 0:
			what, err = "pass", p.Pass(ctx, day)
		case 1:
			what = "expire"
			_, err = p.Driver.Expire(ctx, many)
		case 2:
			what = "reap"
			_, _, err = p.Driver.Reap(ctx, 0, idempotency.Cursor{}, many)
		}
		for _, s := range p.scopes {
			p.add(event{what: what, scope: s, call: call, failed: err != nil, told: err == nil})
		}
	}
}

// chance is true once in n times.
func chance(n int) bool { return rand.IntN(n) == 0 } //nolint:gosec // any will do

// pause lets up to d go by.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(rand.N(d)): //nolint:gosec // see above
	case <-ctx.Done():
	}
}
