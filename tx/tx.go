package tx

import (
	"context"
	"fmt"
	"sync"

	"caskeleton.dev/fault"
)

// Tx is one open transaction, given to fn by a [Runner]. It is opaque: adapters reach their connection through [Unwrap]. A Tx belongs
// to the goroutine that runs fn; only registering hooks and asking for its state are safe from others.
type Tx struct {
	conn      Conn
	isolation Isolation
	abort     func(context.Context) // of a transaction that its caller commits; else nil

	mu       sync.Mutex
	done     bool
	readOnly bool
	doomed   error // why the commit must fail although fn may return nil
	hooks    []func(context.Context) error
	depth    int // of savepoints
}

// Unwrap returns the driver's connection, for the adapter that made it. It returns [ErrDone] after the end of the transaction.
func Unwrap(t *Tx) (Conn, error) {
	if t == nil {
		return nil, fault.Text("tx: no transaction was given (nil *tx.Tx); pass the one that fn received")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return nil, ErrDone
	}
	return t.conn, nil
}

// Err returns nil while t can still commit, [ErrDone] after its end, and TX_ROLLBACK_ONLY once it can only be rolled back.
func (t *Tx) Err() error {
	if _, err := Unwrap(t); err != nil {
		return err
	}
	return t.verdict("tx.Err")
}

// ReadOnly reports whether writes are refused at this point: in a transaction that began read-only, or inside InReadOnly.
func (t *Tx) ReadOnly() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readOnly
}

// Isolation returns the level that the transaction was begun with, for adapters whose statements depend on it.
func (t *Tx) Isolation() Isolation { return t.isolation }

// AfterCommit registers fn to run once this transaction is known to have committed. Hooks run in order of registration, after the
// connection was given back, each under a context of its own that the caller's cancellation does not reach. What a hook returns, or
// a panic in it, is logged and changes nothing. A rollback drops the hooks: that of a savepoint those registered inside it.
// AfterCommit returns [ErrDone] after the end of the transaction. In one that its caller commits, hooks run when [Joined.Committed] is called.
func (t *Tx) AfterCommit(fn func(ctx context.Context) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return ErrDone
	}
	t.hooks = append(t.hooks, fn)
	return nil
}

// Savepoint runs fn in a nested scope. If fn fails, what it did is undone, its hooks are dropped, its error is returned, and the
// transaction may go on: unlike a joined scope, a failed savepoint dooms nothing.
func (t *Tx) Savepoint(ctx context.Context, fn func(ctx context.Context) error) error {
	return t.scope(ctx, false, fn)
}

// scope runs fn behind a savepoint; in a readOnly one, writes are refused.
func (t *Tx) scope(ctx context.Context, readOnly bool, fn func(ctx context.Context) error) error {
	t.mu.Lock()
	if t.done {
		t.mu.Unlock()
		return ErrDone
	}
	t.depth++
	level := t.depth
	name := fmt.Sprintf("s%d", t.depth)
	hooks, doomed, wasReadOnly := len(t.hooks), t.doomed, t.readOnly
	t.mu.Unlock()
	defer t.update(func() { t.depth-- })

	if err := t.conn.Savepoint(ctx, name, readOnly); err != nil {
		t.doom(err)
		return err
	}
	t.update(func() { t.readOnly = wasReadOnly || readOnly })
	defer t.update(func() { t.readOnly = wasReadOnly })

	err := t.guard(ctx, func() error { return fn(ctx) })
	crossed := false
	t.update(func() { crossed = t.depth != level })
	if crossed { // another goroutine's scope began in this one and goes on: releasing this one would end that
		t.forbid(ctx, ErrConcurrentUse)
		return ErrConcurrentUse
	}
	if err == nil && doomed == nil {
		err = t.verdict("tx.Commit") // a joined scope failed in here, and its error was swallowed
	}
	if err == nil {
		if err = t.conn.Release(ctx, name); err != nil {
			t.doom(err)
		}
		return err
	}
	if undo := t.conn.RollbackTo(ctx, name); undo != nil {
		t.doom(undo)
		return err
	}
	t.update(func() { t.hooks, t.doomed = t.hooks[:hooks], doomed })
	return err
}

// join runs fn as a part of t. If it fails in any way, t cannot commit any more.
func (t *Tx) join(ctx context.Context, fn func() error) error {
	err := t.guard(ctx, fn)
	if err != nil {
		t.forbid(ctx, fault.Textf("a scope that joined it failed, and its error was swallowed: %w", err))
	}
	return err
}

// guard runs fn and dooms t if fn does not return: a recovered panic must not let half of a scope commit.
func (t *Tx) guard(ctx context.Context, fn func() error) error {
	returned := false
	defer func() {
		if !returned {
			t.forbid(ctx, fault.Text("a scope panicked, or ended its goroutine"))
		}
	}()
	err := fn()
	returned = true
	return err
}

func (t *Tx) update(set func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	set()
}

// doom makes the commit fail because of err; the first reason stands.
func (t *Tx) doom(err error) {
	t.update(func() {
		if t.doomed == nil {
			t.doomed = err
		}
	})
}

// forbid dooms t, and has the server refuse the COMMIT of a caller who does not ask.
func (t *Tx) forbid(ctx context.Context, err error) {
	t.doom(err)
	if t.abort != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
		defer cancel()
		t.abort(ctx)
	}
}

// verdict returns why t must not commit, nil if it may.
func (t *Tx) verdict(op string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.doomed == nil {
		return nil
	}
	return fault.New(fault.TXRollbackOnly, op, t.doomed)
}

// end refuses any further use, and returns the hooks and whether t was open.
func (t *Tx) end() (hooks []func(context.Context) error, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	open, t.done = !t.done, true
	return t.hooks, open
}
