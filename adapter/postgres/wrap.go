package postgres

import (
	"context"
	"crypto/rand"
	"database/sql"
	"reflect"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// Joined is where the caller of [Wrap] says how the transaction ended.
type Joined = tx.Joined

// sqlHandle is what a transaction of database/sql, and of what is built on it, can do.
type sqlHandle interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// ErrNoTransaction refuses a handle whose statements would commit by themselves.
var ErrNoTransaction error = fault.Text("postgres: the handle is not in a transaction; begin one, and pass its handle instead of the pool's")

// Wrap makes the transaction of handle, which the caller began and will commit or roll back, one that the kit's stores can join:
//
//	t, joined, err := postgres.Wrap(ctx, handle)
//	if err != nil {
//		return err
//	}
//	defer joined.RolledBack() // does nothing after Committed
//	if err := ob.Append(ctx, t, event); err != nil {
//		return err
//	}
//	if err := handle.Commit(); err != nil {
//		return err
//	}
//	return joined.Committed(ctx)
//
// handle is a [pgx.Tx], or anything with the ExecContext and QueryContext of database/sql: *sql.Tx, *sqlx.Tx, bun.Tx, the transaction of an ent
// driver, gorm's Statement.ConnPool, a *sql.Conn after BEGIN. The driver below must be PostgreSQL's (pgx's stdlib, lib/pq). Like handle, the Tx belongs to one goroutine:
// a call that meets another one is refused with [tx.ErrConcurrentUse].
// Wrap returns [ErrNoTransaction] where there is no transaction, with at most two round trips.
//
// What the kit's stores need works. What is different, since the kit does not own the COMMIT:
//
//   - After-commit hooks, the outbox's doorbell among them, run when the caller calls [Joined.Committed]. Without it they never run; events
//     are delivered all the same, when the relay looks next.
//   - The outcome of COMMIT is the caller's to find out: [AddWitness], and tx.Options.Witness of what joins, answer [tx.ErrJoined].
//   - A scope that fails after joining by [Joined.Context] makes the server refuse the COMMIT. Only t.Savepoint undoes that, with what the scope
//     did and its hooks; of the caller's own savepoints the kit knows nothing.
//   - Time-outs are those of the caller's session. Errors are classified by the kit's table alone.
//   - In a transaction of database/sql, arguments of [Querier] are text, bytea, int8, bool and timestamptz; a list travels as one jsonb. A
//     batch takes a round trip a statement.
func Wrap(ctx context.Context, handle any) (*tx.Tx, *Joined, error) {
	c, err := joinedConn(handle)
	if err != nil {
		return nil, nil, err
	}
	isolation, readOnly, err := c.mark(ctx)
	if err != nil {
		return nil, nil, err
	}
	t, j := tx.Join(c, isolation, readOnly)
	return t, j, nil
}

func joinedConn(handle any) (*joined, error) {
	c := &joined{turn: newTurn(), token: rand.Text()}
	switch h := handle.(type) {
	case nil:
	case pgx.Tx:
		c.q = joinedPgx{c, h}
	case sqlHandle:
		c.q = joinedSQL{c, plain(h)}
	}
	if c.q == nil || reflect.ValueOf(handle).Kind() == reflect.Pointer && reflect.ValueOf(handle).IsNil() {
		return nil, fault.Textf("postgres: Wrap was given a %T; pass the open transaction: a pgx.Tx, or a handle with ExecContext and QueryContext (gorm: tx.Statement.ConnPool)", handle)
	}
	return c, nil
}

// plain returns the *sql.Tx or *sql.Conn that h embeds, else h: bun's Tx puts arguments into the text by rules of its own, and leaves those
// for $1 out.
func plain(h sqlHandle) sqlHandle {
	v := reflect.Indirect(reflect.ValueOf(h))
	if v.Kind() != reflect.Struct {
		return h
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); !f.Anonymous || !f.IsExported() || v.Field(i).Kind() != reflect.Pointer || v.Field(i).IsNil() {
			continue
		}
		switch inner := v.Field(i).Interface().(type) {
		case *sql.Tx:
			return inner
		case *sql.Conn:
			return inner
		}
	}
	return h
}
