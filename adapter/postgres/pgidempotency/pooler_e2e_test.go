//go:build e2e

package pgidempotency_test

import (
	"testing"

	"caskeleton.dev/adapter/postgres/pgtest"
)

// TestThroughPgBouncer runs the tests that run in each mode again, through PgBouncer in transaction mode.
func TestThroughPgBouncer(t *testing.T) {
	modes, direct := execModes, through
	t.Cleanup(func() { execModes, through = modes, direct })
	execModes = []string{"cache_describe", "exec", "simple_protocol"}
	through = func(t *testing.T, dsn string) string {
		t.Helper()
		return pgtest.PgBouncerAlone(t, dsn) // the role has the settings of `caskeleton migrate grants`
	}
	for name, test := range map[string]func(*testing.T){
		"Enroll":                                  TestEnroll,
		"ClaimIsMadeOnceAndReadAfterwards":        TestClaimIsMadeOnceAndReadAfterwards,
		"AClaimThatWasBeatenIsReadAnew":           TestAClaimThatWasBeatenIsReadAnew,
		"AClaimDoesNotWaitForACommit":             TestAClaimDoesNotWaitForACommit,
		"TheAnswerIsThereWithTheEffectOrNotAtAll": TestTheAnswerIsThereWithTheEffectOrNotAtAll,
		"AnEmptyAnswerIsAnAnswer":                 TestAnEmptyAnswerIsAnAnswer,
		"TakeOver":                                TestTakeOver,
		"NobodyWaitsForARunningTransaction":       TestNobodyWaitsForARunningTransaction,
	} {
		t.Run(name, test)
	}
}
