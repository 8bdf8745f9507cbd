package scheduletest_test

import (
	"testing"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/lock/schedule"
	"caskeleton.dev/lock/schedule/scheduletest"
)

func TestACorrectDriverPasses(t *testing.T) {
	scheduletest.TestDriver(t, scheduletest.DriverHarness{New: func(*testing.T) schedule.Driver { return &store{} }})
}

func TestABrokenDriverFails(t *testing.T) {
	suite.TestBroken(t, scheduletest.DriverChecks(), map[string]string{
		"gives a slot to all":              "a slot is taken once",
		"gives no slot twice to its owner": "a slot is taken once",
		"takes slots by the second":        "a slot is taken once",
		"takes a slot for all jobs":        "a slot is taken once",
		"looks before it leaps":            "one of many gets a slot",
		"ends a run of anybody":            "a run ends once, by who began it",
		"ends a run again":                 "a run ends once, by who began it",
		"gives an ended slot again":        "a run ends once, by who began it",
		"forgets the reason":               "a run ends once, by who began it",
		"calls every end a success":        "a run ends once, by who began it",
		"starts by a clock of its own":     "times are the store's",
		"ends by a clock of its own":       "times are the store's",
		"lets a run last for ever":         "a run without an end is abandoned",
		"calls every run abandoned":        "a run without an end is abandoned",
		"gives an abandoned slot again":    "a run without an end is abandoned",
		"lists the oldest first":           "the history is the job's, latest slot first",
		"lists the runs of all":            "the history is the job's, latest slot first",
		"lists more than the limit":        "the history is the job's, latest slot first",
		"names the wrong instance":         "the history is the job's, latest slot first",
		"prunes the young":                 "pruning spares the young and the last",
		"prunes the last":                  "pruning spares the young and the last",
		"prunes without a limit":           "pruning spares the young and the last",
		"prunes nothing":                   "pruning spares the young and the last",
	}, func(_ *testing.T, bug string) schedule.Driver { return &store{bug: bug} })
}
