package tx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"caskeleton.dev/fault"
)

// Runner runs functions in transactions of one driver. Safe for concurrent use.
type Runner struct {
	*core
	opts Options
}

// core is what all copies of a runner share; its address is the runner's identity in a context.
type core struct {
	driver                             Driver
	commit, rollback, resolving, hooks time.Duration
	log                                *slog.Logger
}

// NewRunner returns a runner of d's transactions.
func NewRunner(d Driver, o *RunnerOptions) (*Runner, error) {
	if o == nil {
		o = &RunnerOptions{}
	}
	c := &core{driver: d, log: o.Logger}
	if d == nil {
		return nil, errors.New("tx: a driver is required; adapter/postgres has one")
	}
	for _, b := range []struct {
		name     string
		set      *time.Duration
		value, d time.Duration
	}{
		{"CommitTimeout", &c.commit, o.CommitTimeout, 10 * time.Second},
		{"RollbackTimeout", &c.rollback, o.RollbackTimeout, 5 * time.Second},
		// More than the 10 s after which the server ends a session that waits in vain for the rest of its transaction.
		{"ResolveTimeout", &c.resolving, o.ResolveTimeout, 15 * time.Second},
		{"HookTimeout", &c.hooks, o.HookTimeout, defaultHookTimeout},
	} {
		if b.value < 0 {
			return nil, fmt.Errorf("tx: %s is %v; it must be positive, or 0 for %v", b.name, b.value, b.d)
		}
		if *b.set = b.value; b.value == 0 {
			*b.set = b.d
		}
	}
	if err := c.validate(o.Options); err != nil {
		return nil, err
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	return &Runner{core: c, opts: o.Options}, nil
}

// With returns a runner on the same driver that joins the same transactions and has other options. It does not validate them: if they are
// not valid, every method of the new runner returns the error before it begins a transaction or runs fn.
func (r *Runner) With(o Options) *Runner { return &Runner{core: r.core, opts: o} }

// active returns the transaction that ctx carries, nil if none.
func (r *Runner) active(ctx context.Context, op string) (*Tx, error) {
	if err := r.validate(r.opts); err != nil {
		return nil, err
	}
	t := r.carried(ctx)
	if t == nil {
		return nil, nil
	}
	if _, err := Unwrap(t); err != nil {
		return nil, fault.Textf("%s: %w", op, err)
	}
	return t, nil
}

// Active reports whether ctx carries a transaction of this runner, ended or not: what must stand apart from any asks first.
func (r *Runner) Active(ctx context.Context) bool {
	return r.carried(ctx) != nil
}

// InWrite runs fn in a read-write transaction: the active one if ctx carries one, else a new one. If a joined fn fails, the whole
// transaction fails, even where the error is swallowed. Inside InReadOnly it is refused with [ErrReadOnly].
func (r *Runner) InWrite(ctx context.Context, fn func(ctx context.Context, t *Tx) error) error {
	t, err := r.active(ctx, "tx.InWrite")
	switch {
	case err != nil:
		return err
	case r.opts.Replica:
		return errReplica("tx.InWrite")
	case t == nil:
		return r.run(ctx, false, fn)
	case t.ReadOnly():
		return fault.New(fault.TXReadOnly, "tx.InWrite", nil)
	case t.isolation < r.opts.Isolation:
		return errWeaker("tx.InWrite")
	case t.Joined() && r.opts.Witness:
		return fault.Textf("tx.InWrite: Options.Witness: %w", ErrJoined)
	}
	return t.join(ctx, func() error { return fn(ctx, t) })
}

// InRootWrite is InWrite for what must not be a part of anything else: with a transaction active it is refused with [ErrNestedRoot],
// before fn runs and before the database is touched.
func (r *Runner) InRootWrite(ctx context.Context, fn func(ctx context.Context, t *Tx) error) error {
	t, err := r.active(ctx, "tx.InRootWrite")
	if err != nil {
		return err
	}
	if r.opts.Replica {
		return errReplica("tx.InRootWrite")
	}
	if t != nil {
		return fault.New(fault.TXNestedRoot, "tx.InRootWrite", fault.Text("a transaction is active: InWrite joins it, InNew commits apart from it"))
	}
	return r.run(ctx, false, fn)
}

// InReadOnly runs fn in a READ ONLY transaction, on the replica if Options.Replica asks for it. Inside an active transaction it runs fn
// behind a savepoint in which writes are refused. A write fails with [ErrReadOnly].
func (r *Runner) InReadOnly(ctx context.Context, fn func(ctx context.Context, t *Tx) error) error {
	t, err := r.active(ctx, "tx.InReadOnly")
	switch {
	case err != nil:
		return err
	case t == nil:
		return r.run(ctx, true, fn)
	case t.isolation < r.opts.Isolation:
		return errWeaker("tx.InReadOnly")
	case t.ReadOnly():
		return t.join(ctx, func() error { return fn(ctx, t) })
	}
	return t.join(ctx, func() error {
		return t.scope(ctx, true, func(ctx context.Context) error { return fn(ctx, t) })
	})
}

// InNew runs fn in a transaction of its own, on a second connection, which commits or rolls back whatever becomes of the active one.
// A wait for a row that the active one has locked ends after the lock timeout: the server sees no deadlock there.
func (r *Runner) InNew(ctx context.Context, fn func(ctx context.Context, t *Tx) error) error {
	if _, err := r.active(ctx, "tx.InNew"); err != nil {
		return err
	}
	if r.opts.Replica {
		return errReplica("tx.InNew")
	}
	return r.run(ctx, false, fn)
}

// errReplica refuses to write where a replica is asked for.
func errReplica(op string) error {
	return fault.New(fault.TXReadOnly, op, fault.Text("tx: Options.Replica is for InReadOnly alone: a replica takes no writes"))
}

func errWeaker(op string) error {
	return fault.Textf("%s: the active transaction is less isolated than this call asks for; ask for it where the transaction begins", op)
}

// once begins a transaction, runs fn in it and ends it.
func (r *Runner) once(ctx context.Context, readOnly bool, fn func(ctx context.Context, t *Tx) error) error {
	conn, err := r.driver.Begin(ctx, BeginOptions{Options: r.opts, ReadOnly: readOnly})
	if err != nil {
		return err
	}
	t := &Tx{conn: conn, isolation: r.opts.Isolation, readOnly: readOnly}
	returned := false
	defer func() {
		if !returned { // a panic, or runtime.Goexit: both go on by themselves
			t.end()
			_ = r.abort(ctx, conn, nil)
		}
	}()
	err = fn(r.with(ctx, t), t)
	returned = true
	hooks, _ := t.end()
	if err == nil {
		err = t.verdict("tx.Commit")
	}
	if err != nil {
		return r.abort(ctx, conn, err)
	}
	if err = r.finish(ctx, conn); errors.Is(err, fault.DBCommitUnknown) {
		err = r.resolve(ctx, conn, err)
	}
	if err != nil {
		return err
	}
	r.runHooks(ctx, hooks)
	return nil
}

// finish commits. A caller that is gone does not stop it: fn was done, and half a COMMIT is an unknown one.
func (r *Runner) finish(ctx context.Context, conn Conn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.commit)
	defer cancel()
	return conn.Commit(ctx)
}

// abort rolls back and returns cause, why it must. Its own failure is logged, unless it takes away what cause stands for: that nothing was
// committed.
func (r *Runner) abort(ctx context.Context, conn Conn, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.rollback)
	defer cancel()
	err := conn.Rollback(ctx)
	switch {
	case errors.Is(err, fault.DBCommitUnknown):
		r.log.ErrorContext(ctx, "the transaction was ended by SQL, and may have committed", "error", fault.Reason(err), "cause", fault.Reason(cause))
		return err
	case err != nil:
		r.log.WarnContext(ctx, "rollback failed, connection dropped", "error", fault.Reason(err))
	}
	return cause
}

// Value runs fn by one of a runner's methods and returns its result: tx.Value(ctx, runner.InWrite, fn). On failure the result is zero:
// where the method began the transaction, there is a result only once COMMIT is known to have succeeded.
func Value[T any](ctx context.Context, in func(context.Context, func(context.Context, *Tx) error) error,
	fn func(ctx context.Context, t *Tx) (T, error),
) (T, error) {
	var v T
	err := in(ctx, func(ctx context.Context, t *Tx) (err error) {
		v, err = fn(ctx, t)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}
