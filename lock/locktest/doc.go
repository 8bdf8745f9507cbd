// Package locktest proves implementations of [caskeleton.dev/lock.Driver].
//
// A driver's test is a call of [TestDriver], with a harness that makes empty stores, and one of [TestHistory], which plays holders and waiters over
// few keys and asks porcupine whether what they saw can have happened:
//
//	func TestConformance(t *testing.T) {
//		h := locktest.Harness{New: func(t *testing.T) locktest.Store {
//			a, b := open(t), open(t) // two nodes on one empty store; pools of two connections, so that a waiter that holds one is noticed
//			return locktest.Store{Driver: mylock.New(a), Other: mylock.New(b), Expire: func(ctx context.Context, k lock.Key) error {
//				return a.Exec(ctx, "UPDATE ... SET expires_at = ... WHERE ...", k.Digest())
//			}}
//		}}
//		locktest.TestDriver(t, h)
//		locktest.TestHistory(t, h, nil)
//	}
//
// What the suite checks is what [caskeleton.dev/lock.Locker] relies on; each check is known to fail with a driver that has the fault it looks for. A
// driver that is a [caskeleton.dev/lock.Listener] is also asked about hints.
package locktest
