//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	clients     = 24 // requests at a time
	copies      = 3  // clients that send one key at the same time
	cancelEvery = 3  // of that many orders one is cancelled
)

// life is one run of the service, as its clients know it.
type life struct {
	url string
	cut atomic.Int64 // requests that it had taken and never answered
}

// workload is clients that place orders, each key from several of them, until told to stop.
type workload struct {
	life      atomic.Pointer[life]
	inFlight  atomic.Int64
	next      atomic.Int64
	stopping  atomic.Bool
	storeDown atomic.Bool // PostgreSQL is being stopped and started: a session that it cuts is a 500, which says nothing wrong
	done      sync.WaitGroup

	answers, replays, waits, cuts, failures, cancelled atomic.Int64

	mu   sync.Mutex
	seen map[string][]answer // all 201s, by key
}

func newWorkload(t *testing.T) *workload {
	t.Helper()
	w := &workload{seen: map[string][]answer{}}
	t.Cleanup(func() {
		w.stopping.Store(true)
		w.done.Wait()
	})
	return w
}

// run starts the clients in groups; the clients of a group send each key at the same time.
func (w *workload) run(t *testing.T) {
	t.Helper()
	for range clients / copies {
		w.done.Go(func() {
			for !w.stopping.Load() && t.Context().Err() == nil {
				n := w.next.Add(1)
				key := fmt.Sprintf("key-%d", n)
				var group sync.WaitGroup
				for range copies {
					group.Go(func() { w.insist(t, key) })
				}
				group.Wait()
				if n%cancelEvery == 0 {
					w.cancel(t, key)
				}
			}
		})
	}
}

func body(key string) string {
	return fmt.Sprintf(`{"customer_id":%q,"items":[{"sku":"tea","quantity":2},{"sku":"mug","quantity":1}]}`, key)
}

// insist sends a key until it is answered, as a client does that must know.
func (w *workload) insist(t *testing.T, key string) {
	t.Helper()
	w.until(t, func(ctx context.Context, url string) (answer, error) { return place(ctx, url, key, body(key)) }, func(a answer) bool {
		if a.status != http.StatusCreated {
			return false
		}
		w.answers.Add(1)
		if a.replayed {
			w.replays.Add(1)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.seen[key] = append(w.seen[key], a)
		return true
	})
}

// cancel cancels the order of a key. That it is at another version means that an earlier try did, and its answer was lost.
func (w *workload) cancel(t *testing.T, key string) {
	t.Helper()
	w.mu.Lock()
	all := w.seen[key]
	w.mu.Unlock()
	if len(all) == 0 {
		return // the test is over
	}
	w.until(t, func(ctx context.Context, url string) (answer, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+all[0].location+"/cancel", nil)
		if err != nil {
			return answer{}, err
		}
		req.Header.Set("If-Match", all[0].etag)
		return do(req)
	}, func(a answer) bool {
		done := a.status == http.StatusOK || a.status == http.StatusPreconditionFailed
		if done {
			w.cancelled.Add(1)
		}
		return done
	})
}

// until sends a request to whichever process serves, until its answer is taken or the test is over.
func (w *workload) until(t *testing.T, send func(ctx context.Context, url string) (answer, error), taken func(answer) bool) {
	t.Helper()
	for t.Context().Err() == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		w.inFlight.Add(1)
		server := w.life.Load()
		a, err := send(ctx, server.url)
		w.inFlight.Add(-1)
		cancel()
		switch {
		case err != nil && !errors.Is(err, syscall.ECONNREFUSED):
			server.cut.Add(1)
			w.cuts.Add(1)
		case err != nil: // between two lives
		case taken(a):
			return
		case a.status == http.StatusConflict || a.status == http.StatusServiceUnavailable:
			w.waits.Add(1)
		case a.status >= http.StatusInternalServerError && w.storeDown.Load():
			w.failures.Add(1)
		default:
			t.Errorf("unexpected %d: %s", a.status, a.body)
			return
		}
		select {
		case <-t.Context().Done():
		case <-time.After(time.Duration(1+rand.IntN(20)) * time.Millisecond):
		}
	}
}

// untilInFlight returns at a random moment, within a second, at which at least n requests are under way.
func (w *workload) untilInFlight(t *testing.T, n int64) {
	t.Helper()
	select {
	case <-time.After(time.Duration(50+rand.IntN(950)) * time.Millisecond):
	case <-t.Context().Done():
	}
	for deadline := time.Now().Add(startTimeout); w.inFlight.Load() < n; {
		require.True(t, time.Now().Before(deadline), "fewer than %d requests in flight", n)
		select {
		case <-time.After(time.Millisecond):
		case <-t.Context().Done():
		}
	}
}

// finish lets the clients get their last answers.
func (w *workload) finish(t *testing.T) {
	t.Helper()
	w.stopping.Store(true)
	w.done.Wait()
}

// check repeats every key once more and compares all answers to it.
func (w *workload) check(t *testing.T, url string) map[string]answer {
	t.Helper()
	answered := map[string]answer{}
	for key, all := range w.seen {
		last, err := place(t.Context(), url, key, body(key))
		require.NoError(t, err)
		require.True(t, last.replayed, "key %s", key)
		require.Len(t, all, copies, "key %s", key)
		for _, a := range all {
			a.replayed = true
			require.Equal(t, last, a, "key %s", key)
		}
		answered[key] = last
	}
	return answered
}
