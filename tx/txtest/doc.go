// Package txtest proves implementations of [caskeleton.dev/tx.Driver] and [caskeleton.dev/tx.Conn].
//
// A driver's test is one call of [TestDriver], with a harness that makes empty stores:
//
//	func TestConformance(t *testing.T) {
//		txtest.TestDriver(t, txtest.Harness{New: func(t *testing.T) txtest.Store {
//			db := openEmpty(t)
//			return txtest.Store{Driver: db, Limit: 2, Put: put, Has: db.has, Lose: db.cutNextCommit}
//		}})
//	}
//
// What the suite checks is what [caskeleton.dev/tx.Runner] relies on; each check is known to fail with a driver that has the fault it looks
// for.
package txtest
