package lock

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// TxConn is the connection behind a [tx.Tx] whose store can tie locks to a transaction; that of adapter/postgres is one.
type TxConn interface {
	// LockTx takes an exclusive lock on each of the keys, which are distinct and in ascending order, until the transaction ends. It tries all at
	// once, and then waits for wait in all, in order. It returns false where they were not free in time; then none is held that was not held
	// before, and the transaction can go on.
	LockTx(ctx context.Context, keys []int64, wait time.Duration) (bool, error)
}

// InTx holds the keys from here to the end of t, whichever it is: a lock without a lease, a row or a release to forget, at the price of the
// connection that waits. It waits at most wait, which 0 makes one try; then it returns LOCK_ACQUISITION_TIMEOUT, none of the keys is held, and t
// may go on. Holding a key already is no obstacle, and no keys are nothing to do. These locks are apart from those of any [Locker].
//
// Keys are taken in one order everywhere, so calls with several keys never wait in a circle; separate calls in one transaction may, which
// PostgreSQL ends with DB_DEADLOCK. A lock that was taken inside [tx.Tx.Savepoint] ends with it where that is undone. What a REPEATABLE READ or
// SERIALIZABLE transaction reads after the wait is as it was before; READ COMMITTED sees what the holder before has committed.
//
// The key of a lock is 64 bits of SHA-256, for all of the database: put the application's name into it where several share one. In psql:
// ('x' || encode(substr(sha256('a key'), 1, 8), 'hex'))::bit(64)::bigint.
func InTx(ctx context.Context, t *tx.Tx, wait time.Duration, keys ...string) error {
	conn, err := tx.Unwrap(t)
	if err != nil {
		return fault.Textf("lock.InTx: %w", err)
	}
	if err := t.Err(); err != nil {
		return err
	}
	store, ok := conn.(TxConn)
	switch {
	case !ok:
		return fault.Text("lock.InTx: the transaction's store has no locks that end with it; begin it with a tx.Runner of adapter/postgres")
	case wait < 0:
		return fault.Textf("lock.InTx: wait is %s; it must be positive, or 0 to try once", wait)
	case len(keys) == 0:
		return nil
	}
	got, err := store.LockTx(ctx, ordered(keys), wait)
	if err == nil && !got {
		err = fault.New(fault.LockAcquisitionTimeout, "lock.InTx", fault.Textf("not free within %s", wait))
	}
	return err
}

// ordered returns the numbers of keys, each once, ascending.
func ordered(keys []string) []int64 {
	numbers := make([]int64, len(keys))
	for i, k := range keys {
		sum := sha256.Sum256([]byte(k))
		numbers[i] = int64(binary.BigEndian.Uint64(sum[:])) //nolint:gosec // the bits matter, not the sign
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
