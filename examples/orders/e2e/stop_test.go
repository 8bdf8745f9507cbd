package e2e_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgtest"
)

// says waits until the process has logged something.
func (p *process) says(t *testing.T, what string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), what) }, startTimeout, 5*time.Millisecond, what)
}

func TestToldToStopWhilePostgresIsDownItStops(t *testing.T) {
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // takes connections and says nothing
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	closed, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for name, c := range map[string]struct {
		addr    string
		waiting func(t *testing.T, p *process)
	}{
		"refuses": {closed.Addr().String(), func(t *testing.T, p *process) {
			t.Helper()
			p.says(t, "PostgreSQL is not reachable yet")
		}},
		"is silent": {silent.Addr().String(), func(t *testing.T, _ *process) {
			t.Helper()
			conn, err := silent.Accept()
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, "DATABASE_URL=postgres://canary:canary@"+c.addr+"/canary?sslmode=disable", "APP_DATA_DIR="+t.TempDir())
			c.waiting(t, p)
			require.Zero(t, p.terminate(t), "SIGTERM is no failure: %s", p.stderr)
			require.NotContains(t, p.stderr.String(), "canary")
		})
	}
}

func TestToldToStopWhileAnotherMigratesItStops(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := pgtest.Connect(t, dsn)
	_, err := db.Exec(t.Context(), `select pg_advisory_lock(1)`)
	require.NoError(t, err)
	endless := fstest.MapFS{"00001_wait.sql": {Data: []byte("-- +goose Up\nselect pg_advisory_xact_lock(1);\n")}}
	other, err := migrations.New(dsn, []migrations.Stream{{Name: "orders", Schema: "orders", FS: endless}}, &migrations.Options{TableLockTimeout: startTimeout, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := other.Up(ctx)
		ended <- err
	}()
	require.Eventually(t, func() bool {
		var waits bool
		err := db.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	}, startTimeout, 5*time.Millisecond)

	p := launch(t, "DATABASE_URL="+dsn, "APP_DATA_DIR="+t.TempDir())
	p.says(t, "waiting for another migrator")
	require.Zero(t, p.terminate(t), "SIGTERM is no failure: %s", p.stderr)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}
