// Package audittest proves implementations of [caskeleton.dev/audit.Driver].
//
// A driver's test is one call of [TestDriver], with a harness that makes empty stores:
//
//	func TestConformance(t *testing.T) {
//		audittest.TestDriver(t, audittest.Harness{New: func(t *testing.T) audittest.Store {
//			db := openEmpty(t)
//			return audittest.Store{Driver: mydriver.New(db), Runner: runnerOn(t, db)}
//		}})
//	}
//
// Each check is known to fail with a driver that has the fault it looks for.
package audittest
