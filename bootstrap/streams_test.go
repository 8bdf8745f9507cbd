package bootstrap

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgtest"
)

// TestAServiceHasTheStreamsThatAreOn, and does not start without one that it works with.
func TestAServiceHasTheStreamsThatAreOn(t *testing.T) {
	dsn := pgtest.DSN(t)
	quiet := slog.New(slog.DiscardHandler)
	plain := Service{Name: "plain", Routes: func(*App) (http.Handler, error) { return http.NewServeMux(), nil }}
	c := configOf(t, "DATABASE_URL="+dsn, "APP_MIGRATION_STREAMS=idempotency,lock")
	app, err := start(t.Context(), c, plain, quiet)
	require.NoError(t, err)
	require.NoError(t, app.schema.Verify(t.Context()))
	require.NoError(t, app.DB.Close(t.Context()))
	var tables string
	require.NoError(t, pgtest.Connect(t, dsn).QueryRow(t.Context(), `select string_agg(relname, ' ' order by relname) from pg_class where relnamespace = 'caskeleton'::regnamespace and relname like 'migrations%' and relkind = 'r'`).Scan(&tables))
	require.Equal(t, "migrations_core migrations_idempotency migrations_lock", tables)

	withEvents := plain
	withEvents.Events = &Events{}
	for _, tt := range []struct {
		service Service
		streams string
		missing string
	}{
		{plain, "inbox", "idempotency"},
		{plain, "idempotency", "lock"},
		{withEvents, "idempotency,lock", "outbox-storage"},
		{withEvents, "idempotency,lock,outbox-storage,inbox", "outbox-polling"},
		{withEvents, "idempotency,lock,outbox-storage,outbox-polling", "inbox"},
	} {
		_, err := start(t.Context(), configOf(t, "DATABASE_URL="+dsn, "APP_MIGRATION_STREAMS="+tt.streams), tt.service, quiet)
		require.EqualError(t, err, "APP_MIGRATION_STREAMS leaves out "+tt.missing+", which this service works with; add it")
	}
	all, err := withEvents.streams(configOf(t))
	require.NoError(t, err)
	require.Len(t, all, len(migrations.All()))
}
