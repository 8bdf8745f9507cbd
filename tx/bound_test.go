package tx_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/tx"
)

// watched is a driver that asks whether the last call of each transaction is bounded.
type watched struct {
	recorder

	bounded map[string]bool
}

func (w *watched) Begin(ctx context.Context, o tx.BeginOptions) (tx.Conn, error) {
	c, err := w.recorder.Begin(ctx, o)
	return watchedConn{c, w}, err
}

type watchedConn struct {
	tx.Conn
	driver *watched
}

func (c watchedConn) Commit(ctx context.Context) error {
	_, c.driver.bounded["commit"] = ctx.Deadline()
	return c.Conn.Commit(ctx)
}

func (c watchedConn) Rollback(ctx context.Context) error {
	_, c.driver.bounded["rollback"] = ctx.Deadline()
	return c.Conn.Rollback(ctx)
}

func TestCommitAndRollbackAreBounded(t *testing.T) {
	d := &watched{bounded: map[string]bool{}}
	r, err := tx.NewRunner(d, nil)
	require.NoError(t, err)
	require.NoError(t, r.InWrite(t.Context(), ok))
	require.ErrorIs(t, r.InWrite(t.Context(), boom), errBoom)
	require.Equal(t, map[string]bool{"commit": true, "rollback": true}, d.bounded)
}
