package lock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
	"caskeleton.dev/tx"
)

// lockless is a driver of transactions that know no locks.
type lockless struct{}

func (lockless) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) { return lockless{}, nil }
func (lockless) Commit(context.Context) error                            { return nil }
func (lockless) Rollback(context.Context) error                          { return nil }
func (lockless) Savepoint(context.Context, string, bool) error           { return nil }
func (lockless) Release(context.Context, string) error                   { return nil }
func (lockless) RollbackTo(context.Context, string) error                { return nil }

// lockable is one whose transactions answer as told, and write down what they were asked for.
type lockable struct {
	lockless
	got  bool
	err  error
	keys [][]int64
	wait time.Duration
}

func (l *lockable) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) { return l, nil }

func (l *lockable) LockTx(_ context.Context, keys []int64, wait time.Duration) (bool, error) {
	l.keys, l.wait = append(l.keys, keys), wait
	return l.got, l.err
}

func inWrite(t *testing.T, d tx.Driver, fn func(ctx context.Context, t *tx.Tx) error) error {
	t.Helper()
	r, err := tx.NewRunner(d, nil)
	require.NoError(t, err)
	return r.InWrite(t.Context(), fn)
}

func TestInTxAsksForEachKeyOnceInOneOrder(t *testing.T) {
	l := &lockable{got: true}
	require.NoError(t, inWrite(t, l, func(ctx context.Context, tr *tx.Tx) error {
		require.NoError(t, lock.InTx(ctx, tr, time.Second, "hello", "", "hello", "abc"))
		require.NoError(t, lock.InTx(ctx, tr, time.Second, "abc", "hello", ""))
		return lock.InTx(ctx, tr, time.Second)
	}))
	want := []int64{ // SHA-256 begins with ba7816bf8f01cfea, 2cf24dba5fb0a30e and e3b0c44298fc1c14: FIPS 180-2 has the first
		-0x4587e94070fe3016, -0x1c4f3bbd6703e3ec, 0x2cf24dba5fb0a30e,
	}
	require.Equal(t, [][]int64{want, want}, l.keys, "no keys, no call")
	require.Equal(t, time.Second, l.wait)
}

func TestInTxTellsATimeoutFromAnError(t *testing.T) {
	require.NoError(t, inWrite(t, &lockable{}, func(ctx context.Context, tr *tx.Tx) error {
		err := lock.InTx(ctx, tr, 0, "k")
		require.ErrorIs(t, err, fault.LockAcquisitionTimeout)
		require.True(t, fault.Retryable(err))
		return nil
	}))
	boom := errors.New("boom")
	require.ErrorIs(t, inWrite(t, &lockable{err: boom}, func(ctx context.Context, tr *tx.Tx) error { return lock.InTx(ctx, tr, 0, "k") }), boom)
}

func TestInTxRefuses(t *testing.T) {
	take := func(ctx context.Context, tr *tx.Tx) error { return lock.InTx(ctx, tr, 0, "k") }
	l := &lockable{got: true}
	var ended *tx.Tx
	require.NoError(t, inWrite(t, l, func(_ context.Context, tr *tx.Tx) error {
		ended = tr
		return nil
	}))
	require.ErrorIs(t, take(t.Context(), ended), tx.ErrDone)
	require.ErrorContains(t, take(t.Context(), nil), "no transaction was given")
	require.ErrorContains(t, inWrite(t, lockless{}, take), "lock.InTx: the transaction's store has no locks that end with it; begin it with a tx.Runner of adapter/postgres")
	require.ErrorContains(t, inWrite(t, l, func(ctx context.Context, tr *tx.Tx) error { return lock.InTx(ctx, tr, -time.Second, "k") }),
		"wait is -1s; it must be positive, or 0 to try once")

	r, err := tx.NewRunner(l, nil)
	require.NoError(t, err)
	require.ErrorIs(t, r.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		_ = r.InWrite(ctx, func(context.Context, *tx.Tx) error { return errors.New("swallowed") })
		require.ErrorIs(t, take(ctx, tr), tx.ErrRollbackOnly, "a doomed transaction")
		return nil
	}), tx.ErrRollbackOnly)
	require.Empty(t, l.keys, "the store was not asked")
}
