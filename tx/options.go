package tx

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Options are the settings of one transaction. A zero field means the driver's configured default; no default is unlimited. Where a call
// joins an active transaction, Isolation alone counts: the active one must have at least that level.
type Options struct {
	Isolation        Isolation
	StatementTimeout time.Duration // bound on one statement
	LockTimeout      time.Duration // bound on one wait for a lock
	IdleTimeout      time.Duration // bound on sitting idle between statements, less than RunnerOptions.ResolveTimeout
	Retry            Retry         // whether to run fn again after a serialization failure or a deadlock
	// Replica lets InReadOnly read from the replica, where one is configured and its lag is small enough; rows that were just written may
	// be missing there. Inside an active transaction it has no effect. The other methods refuse it, and it cannot be combined with
	// Serializable.
	Replica bool
	// Witness has the transaction write a row by which its outcome is looked up if COMMIT gets no answer. A transaction that appends an
	// outbox event or completes a keyed operation has such a row without it; a read-only one needs none. Above [ReadCommitted] the row
	// takes the transaction's snapshot at BEGIN, not at the first statement of fn.
	Witness bool
}

// RunnerOptions configure a [Runner]. The zero value is the default.
type RunnerOptions struct {
	Options                       // of every transaction; see With for one call
	CommitTimeout   time.Duration // bound on COMMIT, which the caller's cancellation does not reach; 0 means 10 s
	RollbackTimeout time.Duration // bound on ROLLBACK, likewise; 0 means 5 s
	ResolveTimeout  time.Duration // bound on finding out what became of a COMMIT without an answer, likewise; 0 means 15 s
	HookTimeout     time.Duration // bound on each after-commit hook; 0 means 10 s
	Logger          *slog.Logger  // gets what must not change a result: failed hooks and rollbacks; nil means slog.Default()
}

const defaultHookTimeout = 10 * time.Second

func (o Options) validate() error {
	if o.Isolation < ReadCommitted || o.Isolation > Serializable {
		return fmt.Errorf("tx: Isolation is %d; use ReadCommitted, RepeatableRead or Serializable", o.Isolation)
	}
	if o.Replica && o.Isolation == Serializable {
		return errors.New("tx: a replica has no Serializable; use RepeatableRead with Replica")
	}
	if o.StatementTimeout < 0 || o.LockTimeout < 0 || o.IdleTimeout < 0 {
		return errors.New("tx: StatementTimeout, LockTimeout and IdleTimeout must not be negative; 0 means the configured default")
	}
	return o.Retry.validate()
}

// validate refuses, beside what is wrong by itself, to give up on a lost COMMIT while the server may still wait for it.
func (c *core) validate(o Options) error {
	if o.IdleTimeout >= c.resolving {
		return fmt.Errorf("tx: IdleTimeout is %v, not less than RunnerOptions.ResolveTimeout, %v; lower it, or raise ResolveTimeout", o.IdleTimeout, c.resolving)
	}
	return o.validate()
}
