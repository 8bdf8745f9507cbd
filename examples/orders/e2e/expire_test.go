//go:build e2e

package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/pgtest"
)

// TestStaleOrdersExpireOnceAcrossInstances has three instances on one database look for stale orders many times a second, while orders grow stale, and
// kills one of them: each order expires once, with one event, and no slot runs in two of them.
func TestStaleOrdersExpireOnceAcrossInstances(t *testing.T) {
	dsn := pgtest.DSN(t)
	launchOne := func() *process {
		return start(t, "DATABASE_URL="+dsn, "APP_DATA_DIR="+t.TempDir(), "APP_MULTI_INSTANCE_ENABLED=true",
			"APP_IDEMPOTENCY_KEY_1=0123456789abcdef0123456789abcdef", "ORDERS_EXPIRE_AFTER=24h", "ORDERS_EXPIRE_EVERY=50ms")
	}
	instances := []*process{launchOne(), launchOne(), launchOne()}
	placed, err := place(t.Context(), instances[0].url, "young", teaAndMug) // it is shipped, and does not expire
	require.NoError(t, err)
	require.Equal(t, 201, placed.status, placed.body)

	db := pgtest.Connect(t, dsn)
	_, err = db.Exec(t.Context(), `set session_replication_role = replica`) // without the trigger of the audit columns, which sets the present time
	require.NoError(t, err)
	const rounds, each = 5, 250
	for round := range rounds {
		// Nobody was told of these, so that nobody ships them.
		_, err := db.Exec(t.Context(), `with o as (
				insert into orders."order" (id, status, customer_id, total_cents, version, created_at, created_by, updated_at, updated_by)
				select gen_random_uuid(), 'placed', 'stale', 450, 1, t.stale, 'ann', t.stale, 'ann'
				from generate_series(1, $1::int), (select clock_timestamp() - interval '25 hours') as t (stale) returning id
			) insert into orders.order_item (order_id, line, sku, quantity) select id, 1, 'tea', 1 from o`, each)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return count(t, db, `orders."order" where status = 'expired'`) == (round+1)*each }, startTimeout, 20*time.Millisecond, "round %d", round)
		if round == rounds/2 {
			instances[1].kill()
		}
	}
	require.Eventually(t, func() bool {
		return count(t, db, `caskeleton.outbox_lane`) == 0 && count(t, db, `orders.shipment`) == 1
	}, startTimeout, 5*time.Millisecond)

	const total = rounds * each
	require.Equal(t, total, count(t, db, `caskeleton.outbox_event where type = 'order.expired'`))
	require.Equal(t, total, count(t, db, `(select distinct aggregateid from caskeleton.outbox_event where type = 'order.expired') e`))
	require.Equal(t, 1, count(t, db, `orders."order" where status = 'placed' and shipped`))
	require.Equal(t, total, count(t, db, `orders."order" where status = 'expired' and version = 2 and not shipped`))
	require.GreaterOrEqual(t, count(t, db, `(select distinct instance from caskeleton.job_run where job = 'orders.expire' and outcome = 'succeeded') i`), 2, "one instance did it all")
	require.Zero(t, count(t, db, `caskeleton.job_run where job = 'orders.expire' and outcome in ('failed', 'overran')`))

	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	var id string
	require.NoError(t, db.QueryRow(ctx, `select id::text from orders."order" where status = 'expired' limit 1`).Scan(&id))
	got, err := get(ctx, instances[0].url+"/orders/"+id)
	require.NoError(t, err)
	require.Contains(t, got.body, `"status":"expired"`)
	for i, p := range instances {
		if i != 1 {
			require.Zero(t, p.terminate(t), "instance %d: %s", i, p.stderr)
		}
	}
}
