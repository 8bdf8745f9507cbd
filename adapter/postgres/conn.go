package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// conn is one open transaction on one acquired connection.
type conn struct {
	db        *DB
	pooled    *pgxpool.Conn
	tx        pgx.Tx
	statement time.Duration // statement_timeout here
	readOnly  bool
	scopes    savepoints
	ended     bool // by SQL of fn's
	tap       *tap
	unfit     bool // the connection must not go back to the pool
	changed   bool // the session is not what it was
	turn      turn

	witness      Witness // nil where nothing could tell the outcome
	witnessDepth int     // how many scopes were open when its row was written
}

func (c *conn) server() *pgconn.PgConn { return c.pooled.Conn().PgConn() }

func (c *conn) limit(statements int) { c.db.limit(c.server(), statements, c.statement) }

// fail ends a statement in the transaction and translates its error.
func (c *conn) fail(ctx context.Context, op string, err error) error {
	unlimit(c.server())
	if c.endedBySQL() {
		c.ended = true
		return fault.New(fault.DBCommitUnknown, op, errEndedBySQL)
	}
	return c.translate(ctx, op, err)
}

// usable refuses what would run outside of the transaction.
func (c *conn) usable(op string) error {
	if c.ended {
		return fault.New(fault.DBCommitUnknown, op, errEndedBySQL)
	}
	return nil
}

// endedBySQL reports whether a COMMIT or ROLLBACK of fn's has ended the transaction, even if the next was begun at once.
func (c *conn) endedBySQL() bool {
	server := c.server()
	return c.ended || server.TxStatus() == txIdle && !server.IsClosed() && !server.IsBusy()
}

func (c *conn) translate(ctx context.Context, op string, err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || pg.Code != pgerrcode.ReadOnlySQLTransaction {
		return c.db.translate(ctx, c.server(), op, err)
	}
	if c.readOnly || c.scopes.readOnly() { // we asked for it, so that the write is the program's mistake
		return fault.New(fault.TXReadOnly, op, diagnose(err))
	}
	c.unfit = true
	return c.db.translate(ctx, c.server(), op, err)
}

// exec runs statements of our own, without arguments: one message.
func (c *conn) exec(ctx context.Context, op, sql string) error {
	if err := c.usable(op); err != nil {
		return err
	}
	c.limit(1)
	_, err := c.tx.Exec(ctx, sql)
	return c.fail(ctx, op, err)
}

// Savepoint implements [tx.Conn]. PostgreSQL gives transaction_read_only its old value back when the savepoint ends.
func (c *conn) Savepoint(ctx context.Context, name string, readOnly bool) error {
	return c.turn.do(func() error { return c.savepoint(ctx, name, readOnly) })
}

func (c *conn) savepoint(ctx context.Context, name string, readOnly bool) error {
	sql := "savepoint " + pgx.Identifier{name}.Sanitize()
	if readOnly {
		sql += "; set local transaction_read_only = on"
	}
	if err := c.exec(ctx, "postgres.Savepoint", sql); err != nil {
		return err
	}
	c.scopes = append(c.scopes, savepoint{name, readOnly})
	return nil
}

// Release implements [tx.Conn].
func (c *conn) Release(ctx context.Context, name string) error {
	return c.turn.do(func() error { return c.release(ctx, name) })
}

func (c *conn) release(ctx context.Context, name string) error {
	err := c.leave(ctx, "postgres.Release", name, "")
	c.witnessDepth = min(c.witnessDepth, len(c.scopes))
	return err
}

// RollbackTo implements [tx.Conn].
func (c *conn) RollbackTo(ctx context.Context, name string) error {
	return c.turn.do(func() error { return c.rollbackTo(ctx, name) })
}

func (c *conn) rollbackTo(ctx context.Context, name string) error {
	err := c.leave(ctx, "postgres.RollbackTo", name, "rollback to savepoint "+pgx.Identifier{name}.Sanitize()+"; ")
	if c.witnessDepth > len(c.scopes) {
		c.witness, c.witnessDepth = nil, 0
	}
	return err
}

func (c *conn) leave(ctx context.Context, op, name, first string) error {
	if err := c.exec(ctx, op, first+"release savepoint "+pgx.Identifier{name}.Sanitize()); err != nil {
		return err
	}
	c.scopes.end(name)
	return nil
}

// Rollback implements [tx.Conn].
func (c *conn) Rollback(ctx context.Context) error {
	if !c.turn.last(c.cut) {
		return tx.ErrDone
	}
	defer c.giveBack(ctx)
	if c.endedBySQL() {
		return fault.New(fault.DBCommitUnknown, "postgres.Rollback", errEndedBySQL)
	}
	err := c.tx.Rollback(ctx)
	if gone(err) {
		return nil
	}
	return c.db.classifier.Translate(ctx, "postgres.Rollback", err)
}

func (c *conn) cut() { _ = c.server().Conn().Close() }

// gone reports whether err means that there is no session left that the transaction could live in.
func gone(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return !keepConnection(nil, pg)
	}
	return errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, pgconn.ErrConnClosed)
}

// giveBack releases the connection; pgxpool destroys it where it is closed, busy or still in a transaction.
func (c *conn) giveBack(ctx context.Context) {
	defer c.turn.leave()
	switch {
	case c.unfit:
		c.db.discard(ctx, c.pooled)
	case c.changed:
		c.db.restore(ctx, c.pooled)
	}
	c.pooled.Release()
}
