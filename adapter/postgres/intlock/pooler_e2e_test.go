//go:build e2e

package intlock_test

import (
	"testing"

	"caskeleton.dev/adapter/postgres/pgtest"
)

// TestThroughPgBouncer runs the tests that run in each mode again, and those of waits, through PgBouncer in transaction mode.
func TestThroughPgBouncer(t *testing.T) {
	pgtest.ThroughPgBouncer(t, &execModes, &through, map[string]func(*testing.T){
		"Conformance":                          TestConformance,
		"JavaHolds":                            TestJavaHolds,
		"GoHolds":                              TestGoHolds,
		"TheClockIsReadOnceTheRowIsLocked":     TestTheClockIsReadOnceTheRowIsLocked,
		"AcquireFindsAHolderThatCameMeanwhile": TestAcquireFindsAHolderThatCameMeanwhile,
		"ARepeatOfAnAcquireIsNoLoss":           TestARepeatOfAnAcquireIsNoLoss,
		"CollisionsAreTriedAgain":              TestCollisionsAreTriedAgain,
	})
}
