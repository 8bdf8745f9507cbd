//go:build e2e

package pgidempotency_test

import (
	"testing"

	"caskeleton.dev/adapter/postgres/pgtest"
)

// TestThroughPgBouncer runs the tests that run in each mode again, through PgBouncer in transaction mode.
func TestThroughPgBouncer(t *testing.T) {
	pgtest.ThroughPgBouncer(t, &execModes, &through, map[string]func(*testing.T){
		"Enroll":                                  TestEnroll,
		"ClaimIsMadeOnceAndReadAfterwards":        TestClaimIsMadeOnceAndReadAfterwards,
		"AClaimThatWasBeatenIsReadAnew":           TestAClaimThatWasBeatenIsReadAnew,
		"AClaimDoesNotWaitForACommit":             TestAClaimDoesNotWaitForACommit,
		"TheAnswerIsThereWithTheEffectOrNotAtAll": TestTheAnswerIsThereWithTheEffectOrNotAtAll,
		"AnEmptyAnswerIsAnAnswer":                 TestAnEmptyAnswerIsAnAnswer,
		"TakeOver":                                TestTakeOver,
		"NobodyWaitsForARunningTransaction":       TestNobodyWaitsForARunningTransaction,
	})
}
