package pglock_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pglock"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(crashEnv); dsn != "" {
		if err := holdUntilKilled(dsn, os.Stdout); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

func newLocks(db *postgres.DB) (*pglock.Locks, error) { return pglock.New(db, nil) }
