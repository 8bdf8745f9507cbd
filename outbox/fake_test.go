package outbox_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// recorder is a driver, of transactions and of the outbox, that writes down what it is asked to record.
type recorder struct {
	outbox.Driver
	tx.Conn
	appended []outbox.Event
	calls    int
	fail     error // of Append
	failing  error // of Commit
}

func (r *recorder) Append(_ context.Context, _ *tx.Tx, events []outbox.Event) error {
	r.calls++
	if r.fail == nil {
		r.appended = append(r.appended, events...)
	}
	return r.fail
}

func (r *recorder) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) { return r, nil }
func (r *recorder) Commit(context.Context) error                            { return r.failing }
func (r *recorder) Rollback(context.Context) error                          { return nil }
func (r *recorder) Savepoint(context.Context, string, bool) error           { return nil }
func (r *recorder) Release(context.Context, string) error                   { return nil }
func (r *recorder) RollbackTo(context.Context, string) error                { return nil }

func newOutbox(tb testing.TB, o *outbox.Options) (*outbox.Outbox, *recorder, *tx.Runner) {
	tb.Helper()
	r := &recorder{}
	ob, err := outbox.New(r, o)
	require.NoError(tb, err)
	runner, err := tx.NewRunner(r, nil)
	require.NoError(tb, err)
	return ob, r, runner
}

// record appends events in a transaction of their own.
func record(ctx context.Context, ob *outbox.Outbox, runner *tx.Runner, events ...outbox.Event) error {
	return runner.InWrite(ctx, func(ctx context.Context, t *tx.Tx) error { return ob.Append(ctx, t, events...) })
}

func placed(id string) outbox.Event {
	return outbox.Event{Type: "order.placed", AggregateType: "order", AggregateID: id, Payload: []byte(`{}`)}
}
