package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// DBTX is what SQL runs on: a [*DB], which autocommits, or the handle of a transaction. It has the methods that sqlc's generated DBTX
// asks for.
type DBTX interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

var (
	_ DBTX = (*DB)(nil)
	_ DBTX = querier{}
)

// Querier returns the handle to run SQL in t with. Like t, it belongs to one goroutine: a call during another goroutine's call is refused
// with [tx.ErrConcurrentUse], and the transaction does not commit. After the end of t it answers [tx.ErrDone]; a transaction of another
// driver is refused. COMMIT and ROLLBACK are the runner's: a statement that ends the transaction is answered with DB_COMMIT_UNKNOWN, and
// nothing runs after it. [Wrap] says what differs in a transaction that its caller began.
func Querier(t *tx.Tx) (DBTX, error) {
	c, err := tx.Unwrap(t)
	if err != nil {
		return nil, err
	}
	switch c := c.(type) {
	case *conn:
		return c.querier(), nil
	case *joined:
		return exclusive{&c.turn, c.q}, nil
	}
	return nil, errOtherDriver
}

var errOtherDriver error = fault.Text("postgres: the transaction was begun by another driver; use a runner made with this package's DB")

// connOf returns the connection of a transaction that this package began.
func connOf(t *tx.Tx) (*conn, error) {
	c, err := tx.Unwrap(t)
	if err != nil {
		return nil, err
	}
	switch c := c.(type) {
	case *conn:
		return c, nil
	case *joined:
		return nil, tx.ErrJoined
	}
	return nil, errOtherDriver
}

// querier is for who has the turn.
type querier struct{ c *conn }

func (c *conn) querier() DBTX { return exclusive{&c.turn, querier{c}} }

func (q querier) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := q.c.usable("postgres.Exec"); err != nil {
		return pgconn.CommandTag{}, err
	}
	q.c.changed = q.c.changed || outlasts(sql)
	q.c.limit(1)
	tag, err := q.c.tx.Exec(ctx, sql, args...)
	q.c.ran(sql)
	return tag, q.c.fail(ctx, "postgres.Exec", err)
}

func (q querier) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := q.c.usable("postgres.Query"); err != nil {
		return failedRows{err}, err
	}
	q.c.changed = q.c.changed || outlasts(sql)
	q.c.limit(1)
	q.c.ended = q.c.ended || commits(sql)       // whose tag nobody sees while the rows are open
	inner, _ := q.c.tx.Query(ctx, sql, args...) // the error is in the rows as well
	r := &rows{Rows: inner, fail: func(err error) error {
		q.c.ran(sql)
		return q.c.fail(ctx, "postgres.Query", err)
	}}
	return r, r.Err()
}

func (q querier) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	r, _ := q.Query(ctx, sql, args...)
	return row{r}
}

// Exec runs one statement, which commits by itself. A stale plan is tried once more, on the same connection: it has just forgotten
// the plan, and the statement had no effect. A pooler has not: there it is tried unprepared.
func (db *DB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	pooled, err := db.acquire(ctx, "postgres.Exec")
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer db.release(ctx, pooled, sql)
	db.limit(pooled.Conn().PgConn(), 1, db.cfg.StatementTimeout)
	tag, err := pooled.Exec(ctx, sql, args...)
	if db.stale(err) {
		tag, err = pooled.Exec(ctx, sql, db.anew(args)...)
	}
	return tag, db.fail(ctx, pooled, "postgres.Exec", err)
}

// Query runs one statement, which commits by itself, and keeps a connection until the rows are closed. A stale plan is tried once
// more.
func (db *DB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	pooled, err := db.acquire(ctx, "postgres.Query")
	if err != nil {
		return failedRows{err}, err
	}
	db.limit(pooled.Conn().PgConn(), 1, db.cfg.StatementTimeout)
	query := func(args []any) pgx.Rows {
		inner, _ := pooled.Query(ctx, sql, args...) // the error is in the rows as well
		return inner
	}
	r := &rows{
		Rows:    query(args),
		fail:    func(err error) error { return db.fail(ctx, pooled, "postgres.Query", err) },
		again:   func() pgx.Rows { return query(db.anew(args)) },
		stale:   db.stale,
		release: func() { db.release(ctx, pooled, sql) },
	}
	r.rerun() // where preparing it failed already
	return r, r.Err()
}

// QueryRow is Query for at most one row; without one, Scan returns [pgx.ErrNoRows]. Scan must be called: it gives the connection back.
func (db *DB) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	r, _ := db.Query(ctx, sql, args...)
	return row{r}
}

// anew returns the arguments for a second try after a stale plan. A pooler knows statements by their text, and would give the session the
// plan that it has kept; one without a name it does not keep, and that is described in the trip before, with the types of a prepared one.
func (db *DB) anew(args []any) []any {
	if !db.route.pooler || db.cfg.ExecMode != "cache_statement" {
		return args
	}
	return append([]any{pgx.QueryExecModeCacheDescribe}, args...)
}

func (db *DB) stale(err error) bool {
	code, ok := db.classifier.Classify(err)
	return ok && code == fault.DBStalePlan
}

// fail ends a statement outside a transaction and translates its error. There, a write is refused as read-only by the server alone.
func (db *DB) fail(ctx context.Context, pooled *pgxpool.Conn, op string, err error) error {
	server := pooled.Conn().PgConn()
	unlimit(server)
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == pgerrcode.ReadOnlySQLTransaction {
		db.discard(ctx, pooled)
	}
	return db.translate(ctx, server, op, err)
}
