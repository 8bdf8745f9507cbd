// Package outboxtest proves implementations of the outbox's interfaces, and lets a use case's test say which events it appended.
//
// A driver's test is one call of [TestDriver], with a harness that makes empty stores:
//
//	func TestConformance(t *testing.T) {
//		outboxtest.TestDriver(t, outboxtest.DriverHarness{New: func(t *testing.T) outboxtest.Store {
//			db := openEmpty(t)
//			return outboxtest.Store{Driver: mydriver.New(db), Runner: db.Runner(), Expire: db.ExpireLeases}
//		}})
//	}
//
// A publisher's is one of [TestPublisher], with a harness that makes brokers. What the suites check is what the relay relies on; each
// check is known to fail with an implementation that has the fault it looks for.
//
// [Recorder] is for tests of services.
package outboxtest
