//go:build e2e

package migrations_test

import (
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
