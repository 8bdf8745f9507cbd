//go:build e2e

package e2e_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/embedded"
	"caskeleton.dev/adapter/postgres/pgtest"
)

// TestPostgresRestartedUnderLoadAsksForNoRestartOfOurs ends PostgreSQL in each way that it can end, while orders are placed.
func TestPostgresRestartedUnderLoadAsksForNoRestartOfOurs(t *testing.T) {
	server := pgtest.PrivateServer(t, nil)
	service := start(t, "DATABASE_URL="+server.DSN(), "APP_DATA_DIR="+t.TempDir(), "APP_DB_MAX_CONNS=30", "APP_IDEMPOTENCY_LEASE=500ms")
	probes := func(readyz int) {
		t.Helper()
		require.Eventually(t, func() bool {
			live, err := get(t.Context(), service.url+"/livez")
			require.NoError(t, err)
			require.Equal(t, 200, live.status, "a restart of ours would help nobody")
			ready, err := get(t.Context(), service.url+"/readyz")
			require.NoError(t, err)
			return ready.status == readyz
		}, startTimeout, 10*time.Millisecond, "/readyz is not %d", readyz)
	}
	quiet := slog.New(slog.DiscardHandler)
	w := newWorkload(t)
	w.storeDown.Store(true)
	w.life.Store(&life{url: service.url})
	w.run(t)
	for name, end := range map[string]func(context.Context) error{"fast": server.Stop, "immediate": server.StopImmediate, "kill": server.Kill} {
		w.untilInFlight(t, leastInFlight)
		require.NoError(t, end(t.Context()), name)
		probes(503)
		_, err := embedded.Start(t.Context(), embedded.Options{DataDir: server.DataDir(), BinDir: server.BinDir(), Port: server.Port(), FsyncOff: true, Logger: quiet})
		require.NoError(t, err, name)
		probes(200)
		answered := w.answers.Load()
		require.Eventually(t, func() bool { return w.answers.Load() > answered+clients }, startTimeout, 10*time.Millisecond, name)
	}
	w.finish(t)

	keys := w.check(t, service.url)
	var orders, customers int
	db := pgtest.Connect(t, server.DSN())
	require.NoError(t, db.QueryRow(t.Context(), `select count(*), count(distinct customer_id) from orders."order"`).Scan(&orders, &customers))
	require.Equal(t, len(keys), customers, "orders that no client asked for, or lost ones")
	require.Equal(t, customers, orders, "a key with two orders")
	require.Zero(t, service.terminate(t), "%s", service.stderr)
}
