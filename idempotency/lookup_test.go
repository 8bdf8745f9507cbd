package idempotency_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// gated is a store whose answers to claims arrive one by one, as the test lets them.
type gated struct {
	*store

	gate chan func(ctx context.Context) error // what it returns is the claim's error; it may panic
	at   int                                  // how many claims wait for theirs
	most int
}

func newGated() *gated {
	return &gated{store: newStore(), gate: make(chan func(context.Context) error)}
}

func (g *gated) Claim(ctx context.Context, r idempotency.Request) (idempotency.Record, bool, error) {
	rec, made, err := g.store.Claim(ctx, r)
	g.wait(1)
	defer g.wait(-1)
	select {
	case answer := <-g.gate:
		if failed := answer(ctx); failed != nil {
			return idempotency.Record{}, false, failed
		}
	case <-ctx.Done():
		return idempotency.Record{}, false, ctx.Err()
	}
	return rec, made, err
}

func (g *gated) wait(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.at += n
	g.most = max(g.most, g.at)
}

func arrives(context.Context) error { return nil }

// waits returns how many claims wait, once nothing else moves.
func (g *gated) waits() int {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at
}

// drain lets all claims through, and returns how many there were.
func (g *gated) drain(answer func(context.Context) error) (n int) {
	for ; g.waits() > 0; n++ {
		g.gate <- answer
	}
	return n
}

// leave is the key of what ends a call's context.
type leave struct{}

// crowd is calls with one key at the same time.
type crowd struct {
	guard  *idempotency.Guard
	finish chan struct{} // ends the operation that runs

	wg   sync.WaitGroup
	mu   sync.Mutex
	runs int
	got  map[string]int
}

func newCrowd(t *testing.T, d idempotency.Driver, s *store) *crowd {
	t.Helper()
	runner, err := tx.NewRunner(s, nil)
	require.NoError(t, err)
	keys, err := idempotency.NewKeyring("1", secret)
	require.NoError(t, err)
	g, err := idempotency.New(d, runner, keys, nil)
	require.NoError(t, err)
	return &crowd{guard: g, finish: make(chan struct{}), got: map[string]int{}}
}

func (c *crowd) send(ctx context.Context, n int, fp idempotency.Fingerprint) {
	for range n {
		g := c.guard.With(idempotency.CallOptions{}) // each route has its own
		ctx, cancel := context.WithCancel(ctx)
		ctx = context.WithValue(ctx, leave{}, cancel)
		c.wg.Go(func() {
			defer cancel()
			told := "ended its goroutine"
			defer func() {
				if v := recover(); v != nil {
					told = fmt.Sprint(v)
				}
				c.mu.Lock()
				defer c.mu.Unlock()
				c.got[told]++
			}()
			out, err := idempotency.Do(ctx, g, key, fp, func(context.Context, *tx.Tx) (string, error) {
				c.mu.Lock()
				c.runs++
				c.mu.Unlock()
				<-c.finish
				return "ran", nil
			})
			switch code := fault.CodeOf(err); {
			case err == nil:
				told = fmt.Sprintf("%s %t", out.Value, out.Replayed)
			case code == fault.Internal:
				told = err.Error()
			default:
				told = code.String()
			}
		})
	}
	synctest.Wait()
}

// answers returns what was answered until now.
func (c *crowd) answers() map[string]int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got = map[string]int{}
	return got
}

var otherFP = idempotency.Fingerprint{2}

// However many callers there are, each is told what its own question would have found, and the store is asked once or twice.
func TestACrowdAsksOnce(t *testing.T) {
	for name, c := range map[string]struct {
		state  idempotency.State // of the record that there is; "" for none
		claim  func(context.Context) error
		claims int
		want   map[string]int
	}{
		"new":               {"", arrives, 1, map[string]int{"IDEMPOTENCY_IN_PROGRESS": 49, "IDEMPOTENCY_KEY_REUSED": 50}},
		"finished":          {idempotency.Completed, arrives, 1, map[string]int{"ran true": 50, "IDEMPOTENCY_KEY_REUSED": 50}},
		"running elsewhere": {idempotency.Executing, arrives, 2, map[string]int{"IDEMPOTENCY_IN_PROGRESS": 50, "IDEMPOTENCY_KEY_REUSED": 50}},
		"abandoned":         {idempotency.Abandoned, arrives, 2, map[string]int{"IDEMPOTENCY_ABANDONED": 50, "IDEMPOTENCY_KEY_REUSED": 50}},
		"store gone":        {"", func(context.Context) error { return fault.DBUnavailable }, 2, map[string]int{"DB_UNAVAILABLE": 100}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newGated()
				c2 := newCrowd(t, s, s.store)
				if c.state != "" {
					c2.send(t.Context(), 1, fp)
					s.gate <- arrives
					c2.finish <- struct{}{}
					require.Equal(t, map[string]int{"ran false": 1}, c2.answers())
					for scope, rec := range s.rows {
						rec.State = c.state
						s.rows[scope] = rec
					}
				}
				c2.send(t.Context(), 1, fp)
				c2.send(t.Context(), 49, fp)
				c2.send(t.Context(), 50, otherFP)
				require.Equal(t, c.claims, s.drain(c.claim))
				require.Equal(t, 1, s.most, "claims at a time")
				require.Equal(t, c.want, c2.answers())
				require.Zero(t, idempotency.Lookups(c2.guard))
				close(c2.finish)
				c2.wg.Wait()
				require.LessOrEqual(t, c2.runs, 1)
			})
		})
	}
}

// A caller that came after an operation had ended is not told that it runs, although somebody's question was older.
func TestWhatWasAskedBeforeACallerCameIsNoAnswerToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGated()
		here, elsewhere := newCrowd(t, s, s.store), newCrowd(t, s.store, s.store)
		elsewhere.send(t.Context(), 1, fp)
		here.send(t.Context(), 1, fp) // has found that it runs, and is about to be told
		close(elsewhere.finish)
		require.Equal(t, map[string]int{"ran false": 1}, elsewhere.answers())
		here.send(t.Context(), 1, fp)
		s.gate <- arrives
		require.Equal(t, map[string]int{"IDEMPOTENCY_IN_PROGRESS": 1}, here.answers())
		s.gate <- arrives
		require.Equal(t, map[string]int{"ran true": 1}, here.answers())
		require.Zero(t, here.runs)
	})
}

// Whoever asks may leave, or never return: the next one asks then.
func TestWhoeverAsksMayLeave(t *testing.T) {
	for told, ends := range map[string]func(ctx context.Context) error{
		context.Canceled.Error(): func(ctx context.Context) error { ctx.Value(leave{}).(context.CancelFunc)(); return ctx.Err() },
		"at the disco":           func(context.Context) error { panic("at the disco") },
		"ended its goroutine":    func(context.Context) error { runtime.Goexit(); return nil },
	} {
		t.Run(told, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newGated()
				c := newCrowd(t, s, s.store)
				c.send(t.Context(), 1, fp)
				c.send(t.Context(), 10, fp)
				for range 3 {
					require.Equal(t, 1, s.waits())
					s.mu.Lock()
					clear(s.rows) // what was asked for never came to the store
					s.mu.Unlock()
					s.gate <- ends
					require.Equal(t, map[string]int{told: 1}, c.answers())
				}
				s.gate <- arrives
				require.Equal(t, map[string]int{"IDEMPOTENCY_IN_PROGRESS": 7}, c.answers())
				require.Equal(t, 1, c.runs)
				require.Zero(t, idempotency.Lookups(c.guard))
				close(c.finish)
				require.Equal(t, map[string]int{"ran false": 1}, c.answers())
			})
		})
	}
}

func TestWhoeverWaitsMayLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGated()
		c := newCrowd(t, s, s.store)
		c.send(t.Context(), 1, fp)
		left, leaves := context.WithCancel(t.Context())
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c.send(left, 1, fp)
		c.send(late, 1, fp)
		leaves()
		require.Equal(t, map[string]int{context.Canceled.Error(): 1}, c.answers())
		<-late.Done()
		require.Equal(t, map[string]int{"DB_STATEMENT_TIMEOUT": 1}, c.answers())
		require.Equal(t, 1, s.drain(arrives))
		close(c.finish)
		require.Equal(t, map[string]int{"ran false": 1}, c.answers())
	})
}

// Those who ask for something else cannot take a dead owner's record over, and do not keep the others from it.
func TestACrowdTakesOverOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGated()
		c := newCrowd(t, s, s.store)
		s.commitErr = fault.DBCommitUnknown // leaves the claim, as a crash does
		c.send(t.Context(), 1, fp)
		s.gate <- arrives
		c.finish <- struct{}{}
		require.Equal(t, map[string]int{"DB_COMMIT_UNKNOWN": 1}, c.answers())
		s.commitErr, s.expired = nil, true
		c.send(t.Context(), 1, otherFP)
		c.send(t.Context(), 10, fp)
		c.send(t.Context(), 10, otherFP)
		require.LessOrEqual(t, s.drain(arrives), 3)
		require.Equal(t, map[string]int{"IDEMPOTENCY_IN_PROGRESS": 9, "IDEMPOTENCY_KEY_REUSED": 11}, c.answers())
		require.Equal(t, 2, c.runs)
		close(c.finish)
		require.Equal(t, map[string]int{"ran false": 1}, c.answers())
	})
}

func TestKeysDoNotWaitForOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGated()
		g := newCrowd(t, s, s.store).guard
		for _, k := range []idempotency.Key{key, {Tenant: "t", Method: "POST", Route: "/orders", Client: "abc"}, {Principal: "t", Method: "POST", Route: "/orders", Client: "abc"}} {
			go func() {
				_, _ = idempotency.Do(t.Context(), g, k, fp, func(context.Context, *tx.Tx) (int, error) { return 1, nil })
			}()
		}
		require.Equal(t, 3, s.waits())
		require.Equal(t, 3, s.drain(arrives))
	})
}
