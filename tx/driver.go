package tx

import (
	"context"
	"time"
)

// Isolation is a transaction isolation level of the SQL standard. The zero value is [ReadCommitted].
type Isolation int

// The levels that PostgreSQL keeps apart (it treats READ UNCOMMITTED as READ COMMITTED).
const (
	ReadCommitted Isolation = iota
	RepeatableRead
	Serializable
)

// Options are what one transaction may differ in. A zero field means the driver's configured default, which is never "unlimited". All but
// Isolation count only where the transaction begins: what joins one changes nothing of it.
type Options struct {
	Isolation        Isolation
	StatementTimeout time.Duration // bound on one statement
	LockTimeout      time.Duration // bound on one wait for a lock
	IdleTimeout      time.Duration // bound on sitting idle between statements, less than RunnerOptions.ResolveTimeout
	Retry            Retry         // what becomes of a serialization failure or a deadlock
	// Replica lets InReadOnly read from the replica, where there is one that is near enough: what was just written may not be there yet.
	// Inside an active transaction it has no effect. The other verbs refuse it, and so is Serializable refused with it.
	Replica bool
	// Witness has the transaction write a row by which its outcome is told if COMMIT gets no answer. What writes an outbox event or the
	// answer of a keyed operation has such a row without it. A read-only one needs none. It takes the snapshot of a transaction above
	// [ReadCommitted] when it begins.
	Witness bool
}

// BeginOptions is what a [Driver] is asked to begin.
type BeginOptions struct {
	Options
	ReadOnly bool
}

// Driver begins transactions. adapter/postgres has the one for PostgreSQL. Safe for concurrent use.
type Driver interface {
	// Begin opens a transaction. It must not wait for a free connection without a bound of its own.
	Begin(ctx context.Context, o BeginOptions) (Conn, error)
}

// Conn is one open transaction of a driver. The runner calls it from one goroutine at a time, and calls exactly one of Commit and
// Rollback, once, as the last thing but a [Resolver]'s Resolve; whichever it is must give the connection back, whatever happens. Errors
// are translated: they carry a code where one applies.
type Conn interface {
	// Commit returns nil only if the transaction is known to have committed, and an error with code DB_COMMIT_UNKNOWN if that cannot be
	// known. Any other error means: known not to have committed, and nothing is left to roll back.
	Commit(ctx context.Context) error
	// Rollback ends the transaction. A connection that is already gone is a rolled-back transaction: nil. DB_COMMIT_UNKNOWN says that SQL
	// of fn's had ended it, so that what came before may have committed.
	Rollback(ctx context.Context) error
	// Savepoint opens a nested scope; in a readOnly one, writes are refused until it ends.
	Savepoint(ctx context.Context, name string, readOnly bool) error
	// Release keeps what the scope did and ends it.
	Release(ctx context.Context, name string) error
	// RollbackTo undoes what the scope did and ends it.
	RollbackTo(ctx context.Context, name string) error
}
