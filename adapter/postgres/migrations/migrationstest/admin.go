package migrationstest

import (
	"os"
	"testing"
)

func adminDSN(tb testing.TB) string {
	tb.Helper()
	dsn := os.Getenv("DATABASE_URL")
	if dsn == "" {
		tb.Fatal("migrationstest: set DATABASE_URL to a PostgreSQL 15 or later, as a superuser: these tests need the real one")
	}
	return dsn
}
