package lock

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// TxConn is what a [tx.Conn] implements that has locks which its transaction holds until it ends. The one of adapter/postgres does.
type TxConn interface {
	// LockTx takes keys, which are sorted and distinct, in their order, waiting for wait at most in all. Where that has passed it returns false, and
	// the transaction is as it was before and can go on.
	LockTx(ctx context.Context, keys []int64, wait time.Duration) (bool, error)
}

// InTx takes locks that t holds until it commits or rolls back: no lease, nothing to give back. They are apart from those of any [Locker]. A wait of
// 0 tries once; where it has passed, the error has the code LOCK_ACQUISITION_TIMEOUT, none of the keys was taken and t can go on. Keys are
// taken in one order whoever names them, so that two calls cannot wait for each other. Different keys share a lock with a chance of 2^-64.
func InTx(ctx context.Context, t *tx.Tx, wait time.Duration, keys ...string) error {
	if wait < 0 {
		return fmt.Errorf("lock.InTx: wait is %v; it must be positive, or 0 to try once", wait)
	}
	c, err := tx.Unwrap(t)
	if err != nil {
		return err
	}
	conn, ok := c.(TxConn)
	if !ok {
		return errors.New("lock.InTx: the transaction's driver has no locks; use one of adapter/postgres")
	}
	numbers := make([]int64, len(keys))
	for i, k := range keys {
		d := Key{Name: k}.Digest()
		numbers[i] = int64(binary.BigEndian.Uint64(d[:])) //nolint:gosec // the bits are what counts
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	if len(numbers) == 0 {
		return nil
	}
	switch got, err := conn.LockTx(ctx, numbers, wait); {
	case err != nil:
		return fmt.Errorf("lock.InTx: %w", err)
	case !got:
		return fault.New(fault.LockAcquisitionTimeout, "lock.InTx", errors.New("another transaction holds one of the keys"))
	}
	return nil
}
