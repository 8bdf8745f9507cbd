package tx

import "context"

// Isolation is a transaction isolation level of the SQL standard. The zero value is [ReadCommitted].
type Isolation int

// The levels that PostgreSQL keeps apart (it treats READ UNCOMMITTED as READ COMMITTED).
const (
	ReadCommitted Isolation = iota
	RepeatableRead
	Serializable
)

// BeginOptions are what a runner asks a [Driver] to begin a transaction with.
type BeginOptions struct {
	Options
	ReadOnly bool
}

// Driver begins transactions. adapter/postgres has the one for PostgreSQL. Safe for concurrent use.
type Driver interface {
	// Begin opens a transaction. It must not wait for a free connection without a bound of its own.
	Begin(ctx context.Context, o BeginOptions) (Conn, error)
}

// Conn is one open transaction of a driver. The runner calls its methods from one goroutine at a time, and ends it by exactly one call of
// Commit or Rollback; after that it calls nothing but a [Resolver]'s Resolve. The ending call must give the connection back in every case,
// also when it fails. Errors carry a code where one applies.
type Conn interface {
	// Commit returns nil only if the transaction is known to have committed, and an error with code DB_COMMIT_UNKNOWN if that cannot be
	// known. Any other error means: known not to have committed, and nothing is left to roll back.
	Commit(ctx context.Context) error
	// Rollback undoes the transaction. It returns nil where the connection is already lost, since the server rolls back then. It returns
	// DB_COMMIT_UNKNOWN where a statement of fn, such as a COMMIT, has ended the transaction, so that earlier statements may have
	// committed.
	Rollback(ctx context.Context) error
	// Savepoint opens a nested scope; in a readOnly one, writes are refused until it ends.
	Savepoint(ctx context.Context, name string, readOnly bool) error
	// Release keeps what the scope did and ends it.
	Release(ctx context.Context, name string) error
	// RollbackTo undoes what the scope did and ends it.
	RollbackTo(ctx context.Context, name string) error
}
