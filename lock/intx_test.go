package lock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
	"caskeleton.dev/tx"
)

// txConn is a transaction with locks.
type txConn struct {
	noConn

	asked *[][]int64
	waits *[]time.Duration
	got   bool
	err   error
}

func (c txConn) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) { return c, nil }

func (c txConn) LockTx(_ context.Context, keys []int64, wait time.Duration) (bool, error) {
	*c.asked, *c.waits = append(*c.asked, keys), append(*c.waits, wait)
	return c.got, c.err
}

func inTx(t *testing.T, d tx.Driver, fn func(ctx context.Context, t *tx.Tx) error) error {
	t.Helper()
	r, err := tx.NewRunner(d, nil)
	require.NoError(t, err)
	return r.InWrite(t.Context(), fn)
}

func TestInTx(t *testing.T) {
	c := txConn{asked: &[][]int64{}, waits: &[]time.Duration{}, got: true}
	var ended *tx.Tx
	require.NoError(t, inTx(t, c, func(ctx context.Context, tr *tx.Tx) error {
		ended = tr
		require.NoError(t, lock.InTx(ctx, tr, time.Second, "b", "a", "c", "b"))
		require.NoError(t, lock.InTx(ctx, tr, 0, "c", "b", "a"))
		require.NoError(t, lock.InTx(ctx, tr, 0, "A"))
		require.NoError(t, lock.InTx(ctx, tr, 0))
		require.ErrorContains(t, lock.InTx(ctx, tr, -1, "a"), "wait is -1ns")
		return nil
	}))
	require.Equal(t, []time.Duration{time.Second, 0, 0}, *c.waits)
	require.Len(t, (*c.asked)[0], 3, "each key once")
	require.True(t, slices.IsSorted((*c.asked)[0]), "in one order whoever asks")
	require.Equal(t, (*c.asked)[0], (*c.asked)[1])
	require.NotContains(t, (*c.asked)[0], (*c.asked)[2][0])
	require.ErrorIs(t, lock.InTx(t.Context(), ended, 0, "a"), tx.ErrDone)
	require.Error(t, lock.InTx(t.Context(), nil, 0, "a"))
}

func TestInTxRefused(t *testing.T) {
	c := txConn{asked: &[][]int64{}, waits: &[]time.Duration{}}
	require.NoError(t, inTx(t, c, func(ctx context.Context, tr *tx.Tx) error {
		require.ErrorIs(t, lock.InTx(ctx, tr, time.Second, "a"), fault.LockAcquisitionTimeout)
		return nil
	}), "the transaction goes on")
	c.err = errBoom
	require.ErrorIs(t, inTx(t, c, func(ctx context.Context, tr *tx.Tx) error { return lock.InTx(ctx, tr, time.Second, "a") }), errBoom)
	require.ErrorContains(t, inTx(t, noConn{}, func(ctx context.Context, tr *tx.Tx) error { return lock.InTx(ctx, tr, 0, "a") }), "adapter/postgres")
}
