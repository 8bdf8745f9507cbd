// Package scheduletest proves implementations of [caskeleton.dev/lock/schedule.Driver].
//
// A driver's test is one call of [TestDriver], with a harness that makes empty stores:
//
//	func TestConformance(t *testing.T) {
//		scheduletest.TestDriver(t, scheduletest.DriverHarness{New: func(t *testing.T) schedule.Driver {
//			return mydriver.New(openEmpty(t))
//		}})
//	}
//
// What the suite checks is what [caskeleton.dev/lock/schedule.Scheduler] relies on; each check is known to fail with a driver that has the fault it
// looks for.
package scheduletest
