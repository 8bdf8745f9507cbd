package pginbox_test

import (
	"testing"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/inbox/inboxtest"
)

func TestConformance(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			inboxtest.TestDriver(t, inboxtest.DriverHarness{New: func(t *testing.T) inboxtest.Store {
				t.Helper()
				f := newFixture(t, mode, postgres.Config{MaxConns: 4}, nil)
				return inboxtest.Store{Driver: f.messages, Runner: f.runner}
			}})
		})
	}
}

// TestConformanceAsTheRuntimeRole: the grants of `migrate grants` are enough for all that an inbox does.
func TestConformanceAsTheRuntimeRole(t *testing.T) {
	t.Parallel()
	inboxtest.TestDriver(t, inboxtest.DriverHarness{New: func(t *testing.T) inboxtest.Store {
		t.Helper()
		dsn := migrationstest.RuntimeDSN(t, migrationstest.DSN(t, migrations.Inbox()), migrations.Inbox())
		f := open(t, postgres.Config{DSN: dsn, MaxConns: 4}, nil)
		return inboxtest.Store{Driver: f.messages, Runner: f.runner}
	}})
}
