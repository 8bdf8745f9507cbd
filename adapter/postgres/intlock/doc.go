// Package intlock keeps locks in the INT_LOCK table of Spring Integration's JdbcLockRegistry, so that Go and Java services exclude each other.
//
// The table is the one that Spring Integration 7.0 ships in schema-postgresql.sql, with the column EXPIRED_AFTER; it stays the Java side's to make and to
// migrate. Both sides agree on a row where region and key are the same: the region of [caskeleton.dev/lock.Options] is the registry's, "DEFAULT" in
// both unless set, at most 100 characters, and a key is the text given to the registry's obtain.
//
//	locks, err := intlock.New(db, nil)
//	...
//	if err := locks.Check(ctx); err != nil { // at start: 6.5's layout, or none
//		return err
//	}
//	locker, err := lock.New(locks, &lock.Options{Region: "billing"})
//
// What differs from the kit's own table:
//
//   - Nothing rings. A row has no place to mark that somebody waits, and Java sends no notice, so a waiter polls: it hears of releases in its own process at
//     once, and of others within [caskeleton.dev/lock.Options].Poll. Where every service is the kit's, pglock hands over faster.
//   - Keys are as exact as Spring's, an MD5 name UUID of the text's UTF-8; a key that is a UUID stands for itself, in either case of letters.
//   - Times are the database's, in UTC and without a zone, as Java writes them. Java takes them from its node's clock: a Java node that is fast takes a
//     lease over early, whoever holds it, and one that is slow is taken over early. Nodes that run this package cannot.
//   - A Java holder whose lease has passed may renew it, if nobody took it meanwhile. One of this package may not.
//   - The row of a holder that crashed stays until its key is taken again, or deleteExpired is called on the Java side.
package intlock
