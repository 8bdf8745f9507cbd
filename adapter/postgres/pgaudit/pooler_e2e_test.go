//go:build e2e

package pgaudit_test

import (
	"testing"

	"caskeleton.dev/adapter/postgres/pgtest"
)

// TestThroughPgBouncer runs the tests again through PgBouncer in transaction mode, whose sessions remember no actor of somebody else's.
func TestThroughPgBouncer(t *testing.T) {
	pgtest.ThroughPgBouncer(t, &execModes, &through, map[string]func(*testing.T){
		"TheStoreSetsTheColumns":       TestTheStoreSetsTheColumns,
		"BlankActorsAreTheSystem":      TestBlankActorsAreTheSystem,
		"BulkStatements":               TestBulkStatements,
		"CreatedCannotChange":          TestCreatedCannotChange,
		"ASavepointBringsTheActorBack": TestASavepointBringsTheActorBack,
		"ConcurrentChanges":            TestConcurrentChanges,
	})
}
