// Package pglock keeps leases in PostgreSQL, in caskeleton.lock_lease of the stream "lock": one row a held key.
//
//	locks, err := pglock.New(db, nil)
//	...
//	locker, err := lock.New(locks, nil)
//	...
//	go locker.Run(ctx) // LISTEN, on a connection of its own
//
// The rows of holders that crashed stay until their key is taken again: call [Locks.Reap] from a scheduled job. A service built on bootstrap has all
// of this.
//
// Taking a key is one statement, and so is giving it back. A try that finds the key held reads and writes nothing; a waiter writes once a
// holder, to mark the row as contended, and only the release of such a row is announced, by NOTIFY, which serialises commits: only the holder of a contended key pays for it.
//
// Whether a lease has passed is asked of clock_timestamp() after the row is locked: now() is the time at which the statement began, and it
// may have queued on the row since. Statements run at the READ COMMITTED of the pool's sessions: a collision is then waited out on the row,
// where any other level makes an error of it, which is tried again.
package pglock
