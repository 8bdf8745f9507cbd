// Package idempotencytest proves implementations of [caskeleton.dev/idempotency.Driver].
//
// A driver's test is one call of each test, with a harness that makes empty stores:
//
//	func TestConformance(t *testing.T) {
//		idempotencytest.TestDriver(t, idempotencytest.Harness{New: func(t *testing.T) idempotencytest.Store {
//			db := openEmpty(t)
//			return idempotencytest.Store{Driver: mydriver.New(db), Runner: db.Runner(), Pass: db.PassTime}
//		}})
//	}
//
// [TestDriver] checks promise after promise, [TestModel] compares random sequences of calls with a model, and [TestHistory] has many callers
// and a clock that jumps, and asks whether what they were told can have come from such a model. Each check is known to fail with a driver
// that has the fault it looks for.
package idempotencytest
