package tx

import (
	"context"
	"log/slog"
	"time"

	"caskeleton.dev/fault"
)

// abortTimeout bounds what keeps a caller from committing what must not be.
const abortTimeout = 5 * time.Second

// ErrOpen refuses to say that a transaction has committed while it is open.
var ErrOpen error = fault.Text("tx: the transaction is still open; call Committed after its COMMIT has succeeded")

// JoinedConn is the [Conn] of a transaction that its caller began. Its Commit and Rollback are never called.
type JoinedConn interface {
	Conn
	// Abort makes the server answer COMMIT by ROLLBACK, unless the transaction goes back to a savepoint that is open now.
	Abort(ctx context.Context)
	// Open reports whether the transaction is known to be open.
	Open(ctx context.Context) bool
}

// Joined is how the caller of a transaction that it began itself reports the end of it: by Committed or RolledBack, after its own COMMIT or
// ROLLBACK. postgres.Wrap returns one. Safe for concurrent use.
type Joined struct {
	t    *Tx
	conn JoinedConn
	core *core
}

// Join returns a Tx for the transaction that conn lives in. It is for adapters.
func Join(conn JoinedConn, isolation Isolation, readOnly bool) (*Tx, *Joined) {
	t := &Tx{conn: conn, isolation: isolation, readOnly: readOnly, abort: conn.Abort}
	return t, &Joined{t, conn, &core{hooks: defaultHookTimeout, log: slog.Default()}}
}

// Context returns a context in which the transaction is the active one of r: InWrite and InReadOnly join it, InRootWrite refuses it, InNew
// stays outside of it, and [FromContext] finds it. It is for code that passes transactions through the context. r must be a runner on the
// same database; that is not checked.
func (j *Joined) Context(ctx context.Context, r *Runner) context.Context { return r.with(ctx, j.t) }

// Committed reports that COMMIT has succeeded, and runs the after-commit hooks as a runner does. It returns [ErrOpen] if the transaction is
// still open, [ErrDone] if its end was reported before, and [ErrRollbackOnly], without running hooks, if a joined scope had failed: then
// the server has answered the COMMIT by ROLLBACK.
func (j *Joined) Committed(ctx context.Context) error {
	const op = "tx.Committed"
	if _, err := Unwrap(j.t); err != nil {
		return fault.Textf("%s: %w", op, err)
	}
	if j.conn.Open(ctx) {
		return fault.Textf("%s: %w", op, ErrOpen)
	}
	hooks, open := j.t.end()
	if !open {
		return fault.Textf("%s: %w", op, ErrDone)
	}
	if err := j.t.verdict(op); err != nil {
		return err
	}
	j.core.runHooks(j.outside(ctx, entryOf(ctx)), hooks)
	return nil
}

// outside hides the transaction from hooks, for each runner that ctx carries it for.
func (j *Joined) outside(ctx context.Context, e *entry) context.Context {
	switch {
	case e == nil:
		return ctx
	case e.t != j.t:
		return j.outside(ctx, e.outer)
	}
	return j.outside(e.core.with(ctx, nil), e.outer)
}

// RolledBack reports that nothing of the transaction took effect, and drops the hooks. If its end was reported before it does nothing, so
// that it may be deferred.
func (j *Joined) RolledBack() { j.t.end() }

// Joined reports whether the transaction was begun by its caller, who commits it. Then the kit does not learn the outcome of COMMIT, and
// hooks run when [Joined.Committed] is called, or never.
func (t *Tx) Joined() bool { return t.abort != nil }
