package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"caskeleton.dev/fault"
)

// Locks of a transaction are advisory ones in the form of one bigint: the kit's own take two ints, which never meet them.
const (
	tryLocksSQL = `select bool_and(pg_try_advisory_xact_lock(k)) from unnest($1::bigint[]) k`

	// Every wait has what is left of the whole. lock_timeout gets its old value back here, and from the savepoint where this fails.
	awaitLocksSQL = `
with was as materialized (select current_setting('lock_timeout') as v),
locked as materialized (
  select was.v,
    set_config('lock_timeout', greatest(1, ceil($2::bigint - 1000 * extract(epoch from clock_timestamp() - statement_timestamp())))::bigint::text, true),
    pg_advisory_xact_lock(k)
  from was, unnest($1::bigint[]) k)
select set_config('lock_timeout', min(v), true) is not null from locked`

	lockScope = "locks"
)

// LockTx implements the TxConn of package lock. A savepoint frees what was taken where not all was: what the failed try got, so that the wait
// takes the keys in order, and what the server granted just as it reported lock_timeout.
func (c *conn) LockTx(ctx context.Context, keys []int64, wait time.Duration) (bool, error) {
	const op = "postgres.LockTx"
	if err := c.turn.take(); err != nil {
		return false, err
	}
	defer c.turn.leave()
	if err := c.usable(op); err != nil {
		return false, err
	}
	switch {
	case c.server().TxStatus() == txFailed:
		return false, fault.New(fault.TXRollbackOnly, op, fault.Text("a statement has failed, and nothing runs in the transaction any more"))
	case wait >= c.statement:
		return false, fault.Textf("postgres: wait is %s, and statement_timeout, %s, ends the statement that waits; shorten it, or raise StatementTimeout",
			wait, c.statement)
	}
	if got, err := c.tryLocks(ctx, keys); got || err != nil || wait == 0 {
		return got, err
	}
	return c.lockInScope(ctx, awaitLocksSQL, keys, Millis(wait))
}

func (c *conn) tryLocks(ctx context.Context, keys []int64) (got bool, err error) {
	if len(keys) > 1 {
		return c.lockInScope(ctx, tryLocksSQL, keys)
	}
	err = querier{c}.QueryRow(ctx, tryLocksSQL, keys).Scan(&got) // one key is taken or not: there is nothing to free
	return got, err
}

// lockInScope runs sql, which takes locks, and keeps them where it got all.
func (c *conn) lockInScope(ctx context.Context, sql string, args ...any) (got bool, err error) {
	if err := c.savepoint(ctx, lockScope, false); err != nil {
		return false, err
	}
	if err = (querier{c}).QueryRow(ctx, sql, args...).Scan(&got); got && err == nil {
		return true, c.release(ctx, lockScope)
	}
	undo := c.rollbackTo(context.WithoutCancel(ctx), lockScope) // bounded, as any statement is
	if undo == nil && errors.Is(err, fault.DBLockTimeout) {
		return false, nil
	}
	return false, cmp.Or(err, undo)
}
