package locktest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"caskeleton.dev/internal/testkit/history"
	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/lock"
)

// HistoryOptions say what [TestHistory] plays. The zero value is the default.
type HistoryOptions struct {
	Workers int // goroutines, half of them on each node; 0 means 8
	Rounds  int // acquisitions that each tries; 0 means 20
	Keys    int // 0 means 3. The leases of every second one are ended by Store.Expire, those of the others pass by themselves
	// Fault, if any, is called again and again while they work, until its context ends: it cuts connections, or stops the store for a while.
	Fault func(ctx context.Context)
}

// player is what the workers share.
type player struct {
	Store
	HistoryOptions

	history  *history.History[event]
	lockers  [2]*lock.Locker
	acquired atomic.Int32
}

func play(ctx context.Context, s Store, o HistoryOptions) {
	for n, standard := range map[*int]int{&o.Workers: 8, &o.Rounds: 20, &o.Keys: 3} {
		if *n == 0 {
			*n = standard
		}
	}
	p := &player{Store: s, HistoryOptions: o, history: history.New[event]()}
	for i, d := range []lock.Driver{s.Driver, s.Other} {
		l, err := lock.New(record(d, p.history), &lock.Options{Poll: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		suite.Must(err, "lock.New")
		p.lockers[i] = l
	}
	around, stop := context.WithCancel(ctx)
	var others, workers sync.WaitGroup
	others.Go(func() { _ = p.lockers[0].Run(around) }) // the other one hears nothing and polls
	others.Go(func() { p.expire(around) })
	if o.Fault != nil {
		others.Go(func() {
			for around.Err() == nil {
				o.Fault(around)
			}
		})
	}
	for i := range o.Workers {
		workers.Go(func() {
			for range o.Rounds {
				p.round(ctx, p.lockers[i%2])
			}
		})
	}
	workers.Wait()
	stop()
	others.Wait()
	if n := p.acquired.Load(); int(n) < o.Workers {
		suite.Fail("%d workers acquired %d times in all: nothing was tested", o.Workers, n)
	}
	judge(p.history.Events())
}

// round tries for a key, holds it for a while if it gets it, and gives it back, sometimes too late.
func (p *player) round(ctx context.Context, l *lock.Locker) {
	n := rand.IntN(p.Keys) //nolint:gosec // any key will do
	natural := n%2 == 0
	o := lock.AcquireOptions{Wait: rand.N(60 * time.Millisecond), Lease: long} //nolint:gosec // likewise
	if chance(4) {
		o.Wait = 0
	}
	if natural {
		o.Lease = o.Wait + 40*time.Millisecond
	}
	patient, cancel := context.WithCancel(ctx)
	defer cancel()
	if chance(5) {
		defer time.AfterFunc(rand.N(5*time.Millisecond), cancel).Stop() //nolint:gosec // likewise
	}
	var token lock.Token
	lease, err := l.Acquire(context.WithValue(patient, tokenKey{}, &token), name(n), &o)
	if err != nil { // the answers are in the history
		pause(ctx, 2*time.Millisecond)
		return
	}
	p.acquired.Add(1)
	pause(ctx, 3*time.Millisecond)
	if chance(3) {
		_ = lease.Renew(ctx, o.Lease)
	}
	if natural {
		p.believe(lease, n, token)
		if chance(2) { // overrun
			<-lease.Done()
			pause(ctx, 60*time.Millisecond)
		}
	}
	_ = lease.Release(ctx)
}

// believe notes that a holder takes the key for its own.
func (p *player) believe(lease *lock.Lease, n int, token lock.Token) {
	call := p.history.Now()
	select {
	case <-lease.Done():
	default:
		p.history.Add(event{kind: believe, key: name(n), token: token, call: call, ret: p.history.Now()})
	}
}

// expire ends leases now and then.
func (p *player) expire(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, 8*time.Millisecond)
		if n := rand.IntN(p.Keys); n%2 == 1 { //nolint:gosec // any key will do
			call := p.history.Now()
			err := p.Expire(ctx, key(name(n)))
			p.history.Add(event{kind: expire, key: name(n), call: call, ret: p.history.Now(), failed: err != nil})
		}
	}
}

func name(n int) string { return fmt.Sprint("key ", n) }

// chance is true once in n times.
func chance(n int) bool { return rand.IntN(n) == 0 } //nolint:gosec // see above

// pause lets up to d go by.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(rand.N(d)): //nolint:gosec // see above
	case <-ctx.Done():
	}
}
