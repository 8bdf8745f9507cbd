// Package inboxtest proves implementations of [caskeleton.dev/inbox.Driver].
//
// A driver's test is one call of [TestDriver], with a harness that makes empty stores:
//
//	func TestConformance(t *testing.T) {
//		inboxtest.TestDriver(t, inboxtest.DriverHarness{New: func(t *testing.T) inboxtest.Store {
//			db := openEmpty(t)
//			return inboxtest.Store{Driver: mydriver.New(db), Runner: db.Runner()}
//		}})
//	}
//
// What the suite checks is what [caskeleton.dev/inbox.Inbox] relies on; each check is known to fail with a driver that has the fault it
// looks for.
package inboxtest
