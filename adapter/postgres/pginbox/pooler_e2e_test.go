//go:build e2e

package pginbox_test

import (
	"testing"

	"caskeleton.dev/adapter/postgres/pgtest"
)

// TestThroughPgBouncer runs the tests that run in each mode again, through PgBouncer in transaction mode.
func TestThroughPgBouncer(t *testing.T) {
	pgtest.ThroughPgBouncer(t, &execModes, &through, map[string]func(*testing.T){
		"ThePoisonMessageIsParkedAndTheOthersGoOn":       TestThePoisonMessageIsParkedAndTheOthersGoOn,
		"CountsSurviveRollbacks":                         TestCountsSurviveRollbacks,
		"AfterCrashesInTheHandlerItIsParkedBeforeItRuns": TestAfterCrashesInTheHandlerItIsParkedBeforeItRuns,
		"NoValueReachesTheReasonOrTheLog":                TestNoValueReachesTheReasonOrTheLog,
		"ASessionThatEndsInTheMiddle":                    TestASessionThatEndsInTheMiddle,
		"Claim":                                          TestClaim,
		"Park":                                           TestPark,
		"ARedeliveryIsRecognised":                        TestARedeliveryIsRecognised,
		"FiftyAtOnceTakeEffectOnce":                      TestFiftyAtOnceTakeEffectOnce,
		"ManyMessagesOftenDeliveredTakeEffectOnceEach":   TestManyMessagesOftenDeliveredTakeEffectOnceEach,
		"ADuplicateWaitsForTheOpenOne":                   TestADuplicateWaitsForTheOpenOne,
		"ADuplicateOfALongOneIsGivenBackAndOthersGoOn":   TestADuplicateOfALongOneIsGivenBackAndOthersGoOn,
		"AUniqueViolationInTheHandlerPoisonsNothing":     TestAUniqueViolationInTheHandlerPoisonsNothing,
		"Conformance":                                    TestConformance,
	})
}
