//go:build e2e

package migrations_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgtest"
)

// A readiness probe asks as the service's own role, which may stand behind a pooler.
func TestVerifyThroughPgBouncer(t *testing.T) {
	m, err := migrations.New(pgtest.PgBouncer(t, migrationstest.DSN(t, migrations.Inbox())), []migrations.Stream{migrations.Inbox()}, nil)
	require.NoError(t, err)
	require.NoError(t, m.Verify(t.Context()))
}

// The migration lock is a session's, which a pooler shares: whoever migrates there is told so before anything is touched, also by a pooler that
// takes no notice of the session's settings.
func TestMigratingThroughPgBouncerIsRefused(t *testing.T) {
	for name, settings := range map[string][]string{
		"it refuses settings": nil,
		"it drops settings":   {"ignore_startup_parameters = search_path, statement_timeout, idle_in_transaction_session_timeout, lock_timeout, client_connection_check_interval"},
	} {
		t.Run(name, func(t *testing.T) {
			direct := pgtest.DSN(t)
			m, err := migrations.New(pgtest.PgBouncer(t, direct, settings...), []migrations.Stream{migrations.Inbox()}, &migrations.Options{Logger: slog.New(slog.DiscardHandler)})
			require.NoError(t, err)
			done, err := m.Up(t.Context())
			require.ErrorIs(t, err, migrations.ErrPooler)
			require.ErrorContains(t, err, "give the address of the server itself")
			require.Empty(t, done)
			_, err = m.Grant(t.Context(), migrations.Roles{Runtime: "nobody"})
			require.ErrorIs(t, err, migrations.ErrPooler)
			var touched bool
			require.NoError(t, pgtest.Connect(t, direct).QueryRow(t.Context(), "select exists (select from pg_namespace where nspname = 'caskeleton')").Scan(&touched))
			require.False(t, touched)
		})
	}
}
