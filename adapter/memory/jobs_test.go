package memory_test

import (
	"testing"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/lock/schedule"
	"caskeleton.dev/lock/schedule/scheduletest"
)

func TestJobsConform(t *testing.T) {
	scheduletest.TestDriver(t, scheduletest.DriverHarness{New: func(*testing.T) schedule.Driver { return memory.NewJobs() }})
}
