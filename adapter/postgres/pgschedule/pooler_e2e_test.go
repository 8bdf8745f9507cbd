//go:build e2e

package pgschedule_test

import (
	"testing"

	"caskeleton.dev/adapter/postgres/pgtest"
)

// TestThroughPgBouncer runs the tests of what instances do again, through PgBouncer in transaction mode.
func TestThroughPgBouncer(t *testing.T) {
	pgtest.ThroughPgBouncer(t, &execModes, &through, map[string]func(*testing.T){
		"Conformance":                      TestConformance,
		"EachSlotRunsOnceInThreeInstances": TestEachSlotRunsOnceInThreeInstances,
		"ARepeatMeetsItsOwnLostAnswer":     TestARepeatMeetsItsOwnLostAnswer,
	})
}
