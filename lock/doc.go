// Package lock is an efficiency lock: it keeps work from being done twice at the same time, and is no guard of correctness, which stays with
// database constraints (unique keys, optimistic versions). There is no fencing token.
//
//	driver, err := pglock.New(db, nil) // or memory.NewLocks, intlock.New, redislock.Open
//	...
//	locker, err := lock.New(driver, &lock.Options{Region: "billing"})
//	...
//	go locker.Run(ctx) // hears of releases in other processes; without it waiters poll
//	err = locker.Do(ctx, "invoices/2026-07", nil, func(ctx context.Context) error {
//		return runner.InWrite(ctx, closeMonth) // committed before the lock is given back
//	})
//
// Who holds a key is kept by a [Driver]; waiting, deadlines, codes and metrics are here. Every call ends. An Acquire takes its Wait at most; a store
// that does not answer can add 1 s for the last request and 1 s for giving back what that may have got.
//
// A lock belongs to a lease, which ends by itself: a crashed holder is no obstacle, and a slow one learns by [Lease.Done] that it holds nothing any
// more, before another one can hold it. Nothing renews a lease unless asked to ([Lease.Renew], [Lease.KeepAlive]).
package lock
