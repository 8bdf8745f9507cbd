package postgres

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// joined is a transaction that its caller began: see [Wrap].
type joined struct {
	turn     turn
	q        Batcher
	token    string // is in a setting of the transaction, by which it knows itself
	readOnly bool
	scopes   savepoints
}

var _ tx.JoinedConn = (*joined)(nil)

// standard serves transactions that came from no [DB], which might have another.
var standard = sync.OnceValues(func() (*Classifier, error) { return NewClassifier() })

// A setting is local to the transaction, so what is read back in a second statement tells whether there is one. Unlike SAVEPOINT, which
// would fail outside, it aborts nothing and costs no subtransaction. One that was wrapped before keeps its token.
const (
	markSQL = `select set_config('caskeleton.joined', coalesce(nullif(current_setting('caskeleton.joined', true), ''), $1::text), true), current_setting('transaction_isolation'),
  current_setting('transaction_read_only')`
	markedSQL = `select coalesce(current_setting('caskeleton.joined', true), '') = $1::text`
)

// mark makes sure that there is a transaction, and asks what it is like.
func (c *joined) mark(ctx context.Context) (tx.Isolation, bool, error) {
	var isolation, readOnly string
	if err := c.q.QueryRow(ctx, markSQL, c.token).Scan(&c.token, &isolation, &readOnly); err != nil {
		if errors.Is(err, tx.ErrDone) {
			err = errors.Join(ErrNoTransaction, err)
		}
		return 0, false, err
	}
	var open bool
	if err := c.q.QueryRow(ctx, markedSQL, c.token).Scan(&open); err != nil {
		return 0, false, err
	}
	if !open {
		return 0, false, ErrNoTransaction
	}
	c.readOnly = readOnly == "on"
	switch isolation {
	case "repeatable read":
		return tx.RepeatableRead, c.readOnly, nil
	case "serializable":
		return tx.Serializable, c.readOnly, nil
	}
	return tx.ReadCommitted, c.readOnly, nil
}

// Open implements [tx.JoinedConn]. Handles that have ended say so without a round trip; a connection that goes on does not know the token.
func (c *joined) Open(ctx context.Context) bool {
	if c.turn.take() != nil {
		return true // a statement is running in it
	}
	defer c.turn.leave()
	var open bool
	err := c.q.QueryRow(ctx, markedSQL, c.token).Scan(&open)
	pg, answered := serverError(err)
	return open || answered && pg.Code == pgerrcode.InFailedSQLTransaction
}

// Abort implements [tx.JoinedConn]: any error does it. It waits for its turn, since nobody else keeps the caller from committing.
func (c *joined) Abort(ctx context.Context) {
	select {
	case c.turn.taken <- struct{}{}:
		defer c.turn.leave()
	case <-ctx.Done():
		return
	}
	_, _ = c.q.Exec(ctx, `do $$ begin raise exception 'a scope that joined this transaction has failed: it cannot commit'; end $$`)
}

// errNotOurs is never seen: a runner ends only what it began.
var errNotOurs = fault.Textf("postgres: %w", tx.ErrJoined)

// Commit implements [tx.Conn].
func (c *joined) Commit(context.Context) error { return errNotOurs }

// Rollback implements [tx.Conn].
func (c *joined) Rollback(context.Context) error { return errNotOurs }

// Savepoint implements [tx.Conn].
func (c *joined) Savepoint(ctx context.Context, name string, readOnly bool) error {
	if err := c.turn.take(); err != nil {
		return err
	}
	defer c.turn.leave()
	if _, err := c.q.Exec(ctx, "savepoint "+scopeName(name)); err != nil {
		return err
	}
	c.scopes = append(c.scopes, savepoint{name, readOnly})
	if !readOnly {
		return nil
	}
	_, err := c.q.Exec(ctx, "set local transaction_read_only = on")
	return err
}

// Release implements [tx.Conn].
func (c *joined) Release(ctx context.Context, name string) error {
	return c.turn.do(func() error { return c.release(ctx, name) })
}

func (c *joined) release(ctx context.Context, name string) error {
	if _, err := c.q.Exec(ctx, "release savepoint "+scopeName(name)); err != nil {
		return err
	}
	c.scopes.end(name)
	return nil
}

// RollbackTo implements [tx.Conn].
func (c *joined) RollbackTo(ctx context.Context, name string) error {
	return c.turn.do(func() error {
		if _, err := c.q.Exec(ctx, "rollback to savepoint "+scopeName(name)); err != nil {
			return err
		}
		return c.release(ctx, name)
	})
}

// scopeName keeps out of the way of the caller's savepoints.
func scopeName(name string) string { return pgx.Identifier{"caskeleton_" + name}.Sanitize() }

// translate is that of the classifier, but a handle that has ended is a transaction that has.
func (c *joined) translate(ctx context.Context, op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxClosed), errors.Is(err, sql.ErrTxDone):
		return fault.Textf("%s: %w", op, tx.ErrDone)
	}
	if pg, ok := serverError(err); ok && pg.Code == pgerrcode.ReadOnlySQLTransaction && (c.readOnly || c.scopes.readOnly()) {
		return fault.New(fault.TXReadOnly, op, diagnose(err))
	}
	classifier, broken := standard()
	if broken != nil {
		return broken
	}
	return classifier.Translate(ctx, op, err)
}
