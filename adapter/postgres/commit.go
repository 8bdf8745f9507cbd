package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/failpoint"
	"caskeleton.dev/tx"
)

// Commit implements [tx.Conn]. ctx bounds it; the caller has detached ctx from its own cancellation.
func (c *conn) Commit(ctx context.Context) error {
	if !c.turn.last(c.cut) {
		return tx.ErrDone
	}
	defer c.giveBack(ctx)
	if c.endedBySQL() {
		c.witness = nil // whatever it says, it is not about all that fn did
		return fault.New(fault.DBCommitUnknown, "postgres.Commit", errEndedBySQL)
	}
	if c.turn.refused.Load() {
		_ = c.tx.Rollback(ctx) // where it fails, so has the connection
		return fault.New(fault.TXRollbackOnly, "postgres.Commit", tx.ErrConcurrentUse)
	}
	failpoint.Hit(failpoint.BeforeCommit)
	err := c.tx.Commit(ctx)
	if err == nil {
		failpoint.Hit(failpoint.AfterCommit)
		return nil
	}
	switch outcome(err, c.server().TxStatus()) {
	case rolledBack:
		return fault.New(fault.TXRollbackOnly, "postgres.Commit", diagnose(err))
	case notCommitted:
		return c.translate(ctx, "postgres.Commit", err)
	}
	lost := fault.New(fault.DBCommitUnknown, "postgres.Commit", diagnose(err))
	c.db.log.WarnContext(ctx, "outcome of a commit is unknown", "error", fault.Reason(lost))
	return lost
}

// errEndedBySQL is a misuse whose outcome cannot be told: COMMIT would be answered as if all were well.
var errEndedBySQL error = fault.Text("postgres: a statement in fn ended the transaction; leave COMMIT and ROLLBACK to the runner")

// What ReadyForQuery says of the session: no transaction is open, or a failed one, in which nothing runs before its rollback.
const (
	txIdle   = 'I'
	txFailed = 'E'
)

// verdict is what is known after a COMMIT that did not succeed.
type verdict int

const (
	unknown      verdict = iota
	notCommitted         // known, and err says why
	rolledBack           // known: COMMIT was answered by ROLLBACK
)

// outcome classifies the error of a COMMIT, given the transaction status afterwards. The order matters, and asking for the context's
// errors is no part of it: they are the same whether COMMIT was sent or not.
func outcome(err error, status byte) verdict {
	pg, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return rolledBack
	case answered && severity(pg) == "ERROR" && !strings.HasPrefix(pg.Code, classConnection) && pg.Code != pgerrcode.StatementCompletionUnknown && status == txIdle:
		return notCommitted
	case pgconn.SafeToRetry(err): // COMMIT was never sent
		return notCommitted
	case answered && severity(pg) == "FATAL" && pg.Code == pgerrcode.IdleInTransactionSessionTimeout: // the session ended while it waited for COMMIT
		return notCommitted
	}
	return unknown
}
