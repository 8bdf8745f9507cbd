//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/pgtest"
)

const (
	leastKills    = 20 // SIGKILLs, each with enough requests in flight
	leastClaims   = 5  // of them that leave a claim behind
	mostKills     = 100
	leastInFlight = 8
	clients       = 24 // requests at a time
	copies        = 3  // clients that send one key at the same time
)

// TestKilledAgainAndAgainEachKeyIsOneOrder places orders with repeated and concurrent keys while the service is killed at random moments.
// At the end each key has one order, and every answer that any client ever got for a key is the same, byte for byte.
func TestKilledAgainAndAgainEachKeyIsOneOrder(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := pgtest.Connect(t, dsn)
	env := []string{
		"DATABASE_URL=" + dsn, "APP_DB_MAX_CONNS=30", "APP_IDEMPOTENCY_LEASE=500ms",
		"APP_IDEMPOTENCY_KEY_1=0123456789abcdef0123456789abcdef",
	}
	w := newWorkload(t, 409, 503)
	service := start(t, env...)
	w.life.Store(&life{url: service.url})
	w.run(t)

	kills, claims := 0, 0
	for tries := 0; kills < leastKills || claims < leastClaims; tries++ {
		require.Less(t, tries, mostKills, "%d kills with enough in flight, %d with a claim left behind", kills, claims)
		w.untilInFlight(t, leastInFlight)
		killed := w.life.Load()
		service.kill()
		left := claimsLeft(t, db)
		service = start(t, env...)
		w.life.Store(&life{url: service.url})
		if killed.cut.Load() < leastInFlight { // too many were answered at the last moment
			continue
		}
		kills++
		if left > 0 {
			claims++
		}
	}
	w.finish(t)

	answered := w.check(t, service.url)
	t.Logf("%d kills, %d of them left claims behind; %d keys, %d answers, %d replays, %d times told to wait, %d requests cut off",
		kills, claims, len(answered), w.answers.Load(), w.replays.Load(), w.waits.Load(), w.cuts.Load())
	require.Positive(t, w.replays.Load())
	require.Positive(t, w.cuts.Load())

	rows, err := db.Query(t.Context(), `select customer_id, id::text from orders."order"`)
	require.NoError(t, err)
	orders := map[string][]string{}
	var customer, id string
	_, err = pgx.ForEachRow(rows, []any{&customer, &id}, func() error {
		orders[customer] = append(orders[customer], id)
		return nil
	})
	require.NoError(t, err)
	require.Len(t, orders, len(answered), "orders that no client asked for, or lost ones")
	for key, a := range answered {
		require.Len(t, orders[key], 1, "key %s", key)
		require.Equal(t, "/orders/"+orders[key][0], a.location, "key %s", key)
	}
}

// claimsLeft waits for the sessions of the dead process to end and counts the claims without an answer.
func claimsLeft(t *testing.T, db *pgx.Conn) (n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		var sessions int
		err := db.QueryRow(t.Context(), `select count(*) from pg_stat_activity where application_name = 'orders' and datname = current_database()`).Scan(&sessions)
		require.NoError(t, err)
		return sessions == 0
	}, startTimeout, 5*time.Millisecond)
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from caskeleton.idempotency_record where state = 'CLAIMED'`).Scan(&n))
	return n
}

// life is one run of the service, as its clients know it.
type life struct {
	url string
	cut atomic.Int64 // requests that it had taken and never answered
}

// workload is clients that place orders, each key from several of them, until told to stop.
type workload struct {
	again    []int // statuses after which a client sends the same again
	life     atomic.Pointer[life]
	inFlight atomic.Int64
	next     atomic.Int64
	stopping atomic.Bool
	done     sync.WaitGroup

	answers, replays, waits, cuts atomic.Int64

	mu   sync.Mutex
	seen map[string][]answer // all 201s, by key
}

func newWorkload(t *testing.T, again ...int) *workload {
	t.Helper()
	w := &workload{again: again, seen: map[string][]answer{}}
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
				key := fmt.Sprintf("key-%d", w.next.Add(1))
				var group sync.WaitGroup
				for range copies {
					group.Go(func() { w.insist(t, key) })
				}
				group.Wait()
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
	for t.Context().Err() == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		w.inFlight.Add(1)
		server := w.life.Load()
		a, err := place(ctx, server.url, key, body(key))
		w.inFlight.Add(-1)
		cancel()
		switch {
		case err != nil && !errors.Is(err, syscall.ECONNREFUSED):
			server.cut.Add(1)
			w.cuts.Add(1)
		case err != nil: // between two lives
		case a.status == 201:
			w.answers.Add(1)
			if a.replayed {
				w.replays.Add(1)
			}
			w.mu.Lock()
			w.seen[key] = append(w.seen[key], a)
			w.mu.Unlock()
			return
		case slices.Contains(w.again, a.status):
			w.waits.Add(1)
		default:
			t.Errorf("key %s: unexpected %d: %s", key, a.status, a.body)
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
