package tx

import (
	"caskeleton.dev/fault"
)

// What a runner refuses. The first three are codes too, since they are programming errors that a client may trigger.
var (
	// ErrNestedRoot refuses InRootWrite inside an active transaction, before fn runs and before the database is touched.
	ErrNestedRoot error = fault.TXNestedRoot
	// ErrRollbackOnly is the result of a transaction in which a joined scope failed while the outer one went on as if it had not.
	ErrRollbackOnly error = fault.TXRollbackOnly
	// ErrReadOnly refuses a write scope inside a read-only one, and is what a write statement there ends with.
	ErrReadOnly error = fault.TXReadOnly
	// ErrDone refuses the use of a transaction that has ended, or of a context that still carries one.
	ErrDone error = fault.Text("tx: the transaction has ended; a Tx and the context given to fn must not outlive fn")
	// ErrConcurrentUse refuses a statement or a scope that meets one of another goroutine.
	ErrConcurrentUse error = fault.Text("tx: the transaction is in use by another goroutine; it belongs to one at a time, so run its statements one after the other, or give each goroutine a transaction of its own")
	// ErrJoined refuses what only whoever commits can promise, in a transaction that its caller began and commits.
	ErrJoined error = fault.Text("tx: the caller began this transaction and commits it, so the outcome of its COMMIT is not the kit's to find out")
)
