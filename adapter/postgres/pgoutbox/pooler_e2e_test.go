//go:build e2e

package pgoutbox_test

import (
	"testing"

	"caskeleton.dev/adapter/postgres/pgtest"
)

// TestThroughPgBouncer runs the tests that run in each mode again, through PgBouncer in transaction mode.
func TestThroughPgBouncer(t *testing.T) {
	pgtest.ThroughPgBouncer(t, &execModes, &through, map[string]func(*testing.T){
		"AnEventComesBackAsItWasRecorded":                TestAnEventComesBackAsItWasRecorded,
		"OneCallRecordsManyAggregates":                   TestOneCallRecordsManyAggregates,
		"AppendAtEachIsolation":                          TestAppendAtEachIsolation,
		"ReadCommittedReadsTheModeBehindTheAdvisoryLock": TestReadCommittedReadsTheModeBehindTheAdvisoryLock,
		"ADuplicateIdFailsTheTransaction":                TestADuplicateIdFailsTheTransaction,
		"AMissingPartitionIsNamed":                       TestAMissingPartitionIsNamed,
		"RecordedAtNeverGoesBack":                        TestRecordedAtNeverGoesBack,
		"WhatPassesValidationIsStored":                   TestWhatPassesValidationIsStored,
		"AClaimLeasesWhatIsDue":                          TestAClaimLeasesWhatIsDue,
		"ARunHasItsSizeAndSaysWhetherThereIsMore":        TestARunHasItsSizeAndSaysWhetherThereIsMore,
		"ALargeAppendIsDeliveredInRuns":                  TestALargeAppendIsDeliveredInRuns,
		"ADoorbell":                                      TestADoorbell,
		"RungLanesTakeHalfOfAClaim":                      TestRungLanesTakeHalfOfAClaim,
		"TheFloorHidesWhatIsDueBefore":                   TestTheFloorHidesWhatIsDueBefore,
		"AGapStopsTheLane":                               TestAGapStopsTheLane,
		"ClaimsWithAnOlderSnapshotThanTheLane":           TestClaimsWithAnOlderSnapshotThanTheLane,
		"AClaimWaitsForNobody":                           TestAClaimWaitsForNobody,
		"Premake":                                        TestPremake,
		"PublishedEndsAtTheHeadOfTheLane":                TestPublishedEndsAtTheHeadOfTheLane,
		"Settling":                                       TestSettling,
		"AnAttemptCountsUntilTheHeadIsAcknowledged":      TestAnAttemptCountsUntilTheHeadIsAcknowledged,
		"ADrainedLaneIsRemovedAndMadeAgain":              TestADrainedLaneIsRemovedAndMadeAgain,
		"AnOpenAppendNeitherHidesNorBlocks":              TestAnOpenAppendNeitherHidesNorBlocks,
		"ARolledBackAppendLeavesALaneToRemove":           TestARolledBackAppendLeavesALaneToRemove,
		"EventsCommittedBehindAnEmptyLookAreDueAtOnce":   TestEventsCommittedBehindAnEmptyLookAreDueAtOnce,
		"ALateCommitterIsDelivered":                      TestALateCommitterIsDelivered,
		"ARepeatableReadAppendBesideARelay":              TestARepeatableReadAppendBesideARelay,
		"AStaleOwnerChangesNothing":                      TestAStaleOwnerChangesNothing,
		"ARelayWaitsForACutover":                         TestARelayWaitsForACutover,
		"OneLostClaimDoesNotSpoilTheOthers":              TestOneLostClaimDoesNotSpoilTheOthers,
		"ASettlementKeepsAHold":                          TestASettlementKeepsAHold,
		"Conformance":                                    TestConformance,
	})
}
