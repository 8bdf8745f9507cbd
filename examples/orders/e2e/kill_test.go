//go:build e2e

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/embedded"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/internal/failpoint"
)

const (
	leastKills      = 20 // SIGKILLs at random moments, each with enough requests in flight
	leastClaims     = 5  // of them that leave a claim behind
	mostKills       = 100
	leastInFlight   = 8
	killsAtAPoint   = 5  // at each failpoint
	stopsOfPostgres = 10 // as a power cut ends it
)

// TestWhateverIsKilledEachOrderIsPlacedAndShippedOnce places orders with repeated and concurrent keys, and cancels some, while the service
// is killed at random moments and at each failpoint, and PostgreSQL is stopped under it. At the end each key has one order, one
// order.placed and one shipment; the broker has every event, in order within each order; and every answer that any client ever got
// for a key is the same, byte for byte.
func TestWhateverIsKilledEachOrderIsPlacedAndShippedOnce(t *testing.T) {
	server := pgtest.PrivateServer(t, &embedded.Options{}) // fsync is on
	dir := t.TempDir()
	f := &rig{w: newWorkload(t), server: server, env: []string{
		"DATABASE_URL=" + server.DSN(), "APP_DATA_DIR=" + dir, "APP_DB_MAX_CONNS=30", "APP_IDEMPOTENCY_LEASE=500ms",
		"APP_OUTBOX_LEASE=12s", "APP_IDEMPOTENCY_KEY_1=0123456789abcdef0123456789abcdef",
	}}
	f.serve(t)
	f.w.run(t)

	f.killAtRandom(t)
	f.killAtFailpoints(t)
	f.stopPostgres(t)

	f.w.finish(t)
	answered := f.w.check(t, f.w.life.Load().url)
	db := pgtest.Connect(t, server.DSN())
	f.untilShipped(t, db)
	w := f.w
	t.Logf("%d keys, %d answers, %d replays, %d cancelled, %d times told to wait, %d requests cut off, %d failed while PostgreSQL was down",
		len(answered), w.answers.Load(), w.replays.Load(), w.cancelled.Load(), w.waits.Load(), w.cuts.Load(), w.failures.Load())
	for name, n := range map[string]int64{"replays": w.replays.Load(), "cuts": w.cuts.Load(), "cancelled": w.cancelled.Load()} {
		require.Positive(t, n, name)
	}
	require.Zero(t, f.service.terminate(t), "%s", f.service.stderr)

	checkOrders(t, db, answered)
	checkEvents(t, db, int(w.cancelled.Load()))
	checkBroker(t, db, dir)
}

// rig is the service under its clients, on a PostgreSQL of its own.
type rig struct {
	w       *workload
	server  *embedded.Server
	service *process
	env     []string
}

// serve starts the service and tells the clients.
func (f *rig) serve(t *testing.T, env ...string) {
	t.Helper()
	f.service = start(t, append(env, f.env...)...)
	f.w.life.Store(&life{url: f.service.url})
}

func (f *rig) killAtRandom(t *testing.T) {
	t.Helper()
	kills, claims := 0, 0
	for tries := 0; kills < leastKills || claims < leastClaims; tries++ {
		require.Less(t, tries, mostKills, "%d kills with enough in flight, %d with a claim left behind", kills, claims)
		f.w.untilInFlight(t, leastInFlight)
		killed := f.w.life.Load()
		f.service.kill()
		left := f.claimsLeft(t)
		f.serve(t)
		if killed.cut.Load() < leastInFlight { // too many were answered at the last moment
			continue
		}
		kills++
		if left > 0 {
			claims++
		}
	}
	t.Logf("%d kills at random moments, %d left claims behind", kills, claims)
}

// killAtFailpoints lets the service kill itself at each point, at one of the first times that it gets there.
func (f *rig) killAtFailpoints(t *testing.T) {
	t.Helper()
	f.service.kill()
	for _, p := range failpoint.Points() {
		for range killsAtAPoint {
			at := fmt.Sprintf("FAILPOINT=%s:%d", p, 1+rand.IntN(15))
			f.service = launch(t, append([]string{at}, f.env...)...)
			select {
			case f.service.url = <-f.service.ready:
				f.w.life.Store(&life{url: f.service.url})
			case <-f.service.exited: // so soon
			}
			select {
			case <-f.service.exited:
			case <-time.After(2 * startTimeout):
				require.FailNow(t, "the failpoint was never reached", "%s", at)
			}
			status, ok := f.service.cmd.ProcessState.Sys().(syscall.WaitStatus)
			require.True(t, ok)
			require.Equal(t, syscall.SIGKILL, status.Signal(), "%s: %s", at, f.service.stderr)
		}
	}
	f.serve(t)
	t.Logf("%d kills at each of %d failpoints", killsAtAPoint, len(failpoint.Points()))
}

// stopPostgres stops PostgreSQL at once, under the service, which lives on.
func (f *rig) stopPostgres(t *testing.T) {
	t.Helper()
	f.w.storeDown.Store(true)
	for range stopsOfPostgres {
		f.w.untilInFlight(t, leastInFlight)
		require.NoError(t, f.server.StopImmediate(t.Context()))
		_, err := embedded.Start(t.Context(), embedded.Options{DataDir: f.server.DataDir(), Port: f.server.Port(), BinDir: f.server.BinDir()})
		require.NoError(t, err)
		before := f.w.answers.Load()
		require.Eventually(t, func() bool { return f.w.answers.Load() > before }, startTimeout, time.Millisecond, "nothing is served after PostgreSQL came back")
	}
	f.w.storeDown.Store(false)
	t.Logf("%d immediate stops of PostgreSQL", stopsOfPostgres)
}

// claimsLeft waits for the sessions of the dead process to end and counts the claims without an answer.
func (f *rig) claimsLeft(t *testing.T) (n int) {
	t.Helper()
	db := pgtest.Connect(t, f.server.DSN())
	require.Eventually(t, func() bool {
		return count(t, db, `pg_stat_activity where application_name = 'orders' and datname = current_database()`) == 0
	}, startTimeout, 5*time.Millisecond)
	return count(t, db, `caskeleton.idempotency_record where state = 'CLAIMED'`)
}

// untilShipped waits until every order has a shipment and nothing is left to publish.
func (f *rig) untilShipped(t *testing.T, db *pgx.Conn) {
	t.Helper()
	require.Eventually(t, func() bool {
		return count(t, db, `orders.shipment`) == count(t, db, `orders."order"`) && count(t, db, `caskeleton.outbox_lane`) == 0
	}, 5*time.Minute, 50*time.Millisecond, "orders that are never shipped, or events that are never published")
}

func count(t *testing.T, db *pgx.Conn, from string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from `+from).Scan(&n))
	return n
}

// checkOrders compares what clients were told with what is stored.
func checkOrders(t *testing.T, db *pgx.Conn, answered map[string]answer) {
	t.Helper()
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

// checkEvents compares the events with what they tell of.
func checkEvents(t *testing.T, db *pgx.Conn, cancelled int) {
	t.Helper()
	orders := count(t, db, `orders."order"`)
	require.Equal(t, orders, count(t, db, `orders.shipment`))
	require.Equal(t, cancelled, count(t, db, `orders."order" where status = 'cancelled'`))
	for eventType, want := range map[string]int{"order.placed": orders, "shipment.created": orders, "order.cancelled": cancelled} {
		require.Equal(t, want, count(t, db, `caskeleton.outbox_event where type = '`+eventType+`'`), eventType)
	}
	require.Equal(t, orders, count(t, db, `caskeleton.inbox_message where consumer = 'shipping' and state = 'COMPLETED'`))
	require.Zero(t, count(t, db, `caskeleton.inbox_message where state <> 'COMPLETED'`))
	require.Zero(t, count(t, db, `caskeleton.outbox_counter where drained_sequence <> last_sequence`))
}
