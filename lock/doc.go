// Package lock is an efficiency lock: it keeps work from being done twice at the same time, and is no guard of correctness, which stays with
// database constraints (unique keys, optimistic versions). There is no fencing token.
//
//	locker, err := lock.New(pglock.New(db), nil)
//	...
//	err = locker.Do(ctx, "invoices/2026-07", nil, func(ctx context.Context) error {
//		return runner.InWrite(ctx, closeMonth) // committed before the lock is given back
//	})
//
// Who holds a key is kept by a [Driver]; waiting, deadlines, codes and metrics are here. Every call ends: an Acquire within its Wait and what a
// store that does not answer is given, which is 1 s for the request and 1 s for giving back what it may have got.
//
// A lock belongs to a lease, which ends by itself: a crashed holder is no obstacle, and a slow one learns by [Lease.Done] that it holds nothing any
// more, before another one can hold it. Nothing renews a lease unless asked to ([Lease.Renew], [Lease.KeepAlive]).
package lock
