package lock

import (
	"context"
	"errors"
	"fmt"

	"caskeleton.dev/fault"
)

var (
	// ErrLeaseExpired is what a holder gets whose lease had passed before it gave the key back: its work may have run beside another's.
	ErrLeaseExpired error = fault.LockLeaseLost
	// ErrInsideTransaction refuses to take or to give back a lock under a context that carries an open transaction: whoever got the key next would
	// not see what that transaction is about to commit.
	ErrInsideTransaction error = fault.Text("lock: the context carries an open transaction; acquire before it begins and release after it has ended, as Do does, or use InTx")
	// ErrAlreadyHeld refuses to take a key under the context of the lease that holds it, which could only wait for itself.
	ErrAlreadyHeld error = fault.Text("lock: this context's own lease holds the key; locks are not reentrant, so pass the lease down")

	errReleased error = fault.Text("lock: the lease was released; acquire a new one")
)

// canceled returns the error of a call whose context has ended, nil while it has not.
func canceled(ctx context.Context) error {
	err := ctx.Err()
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.Is(cause, err):
		return fault.Textf("lock.Acquire: %w", cause)
	default:
		return fault.Textf("lock.Acquire: %w: %w", err, cause)
	}
}

// timedOut returns the error of a wait that has passed.
func timedOut(k Key) error {
	return fault.New(fault.LockAcquisitionTimeout, "lock.Acquire", fmt.Errorf("%q is held by another", k.Display()))
}

// collided says whether a store gave up a statement because of others like it, which is contention.
func collided(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.DBSerializationFailure || code == fault.DBDeadlock || code == fault.DBLockTimeout
}
