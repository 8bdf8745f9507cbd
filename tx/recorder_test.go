package tx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/tx"
)

// recorder is a driver that writes down what it is asked to do, and fails where it is told to.
type recorder struct {
	calls []string
	fail  map[string]error // by call
	open  int
}

func (r *recorder) did(ctx context.Context, call string) error {
	if ctx.Err() != nil {
		call += " (dead context)"
	}
	r.calls = append(r.calls, call)
	return r.fail[call]
}

func (r *recorder) Begin(ctx context.Context, o tx.BeginOptions) (tx.Conn, error) {
	call := "begin"
	if o.ReadOnly {
		call = "begin read only"
	}
	if o.Replica {
		call += " on the replica"
	}
	if o.Isolation != tx.ReadCommitted {
		call += fmt.Sprintf(" isolation %d", o.Isolation)
	}
	if err := r.did(ctx, call); err != nil {
		return nil, err
	}
	r.open++
	return recorded{r}, nil
}

type recorded struct{ *recorder }

func (c recorded) Commit(ctx context.Context) error   { c.open--; return c.did(ctx, "commit") }
func (c recorded) Rollback(ctx context.Context) error { c.open--; return c.did(ctx, "rollback") }

func (c recorded) Savepoint(ctx context.Context, name string, readOnly bool) error {
	if readOnly {
		return c.did(ctx, "savepoint "+name+" read only")
	}
	return c.did(ctx, "savepoint "+name)
}

func (c recorded) Release(ctx context.Context, name string) error { return c.did(ctx, "release "+name) }

func (c recorded) RollbackTo(ctx context.Context, name string) error {
	return c.did(ctx, "rollback to "+name)
}

var errBoom = errors.New("boom")

func newRunner(t *testing.T) (*tx.Runner, *recorder) {
	t.Helper()
	d := &recorder{fail: map[string]error{}}
	r, err := tx.NewRunner(d, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.Zero(t, d.open, "a connection was never given back: %v", d.calls) })
	return r, d
}

func ok(context.Context, *tx.Tx) error   { return nil }
func boom(context.Context, *tx.Tx) error { return errBoom }
