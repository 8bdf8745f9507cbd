// Package tx runs a function inside a database transaction, and tells the truth about how it ended.
//
// A [Runner] begins, joins, suspends and ends transactions; fn receives the open transaction as a *[Tx]. Whatever must ride the
// transaction takes that *Tx as an argument, so forgetting it does not compile, where a transaction hidden in the context would
// silently autocommit. The context given to fn carries the Tx too, but only for the runner, which finds there what to join.
//
//	err := runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error {
//		q, err := postgres.Querier(t)
//		...
//	})
//
// A nil result means that COMMIT is known to have succeeded. Where it got no answer, the runner asks a driver that is a [Resolver] what
// became of it, within a bound: if it has committed the call succeeds, if it has not it ends with DB_UNAVAILABLE and may be sent again.
// DB_COMMIT_UNKNOWN means that nobody could tell: nothing was retried and no hook ran. Any other error means that nothing of it took effect.
package tx
