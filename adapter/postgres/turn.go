package postgres

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/tx"
)

// turn lets one goroutine at a time use a transaction. Who comes while another is at it is refused, and not queued: a callback of a batch
// would wait for itself.
type turn struct {
	taken   chan struct{} // full meanwhile
	done    atomic.Bool   // read by handles that outlive the transaction
	refused atomic.Bool   // something that fn asked for was not done
}

func newTurn() turn { return turn{taken: make(chan struct{}, 1)} }

func (t *turn) take() error {
	select {
	case t.taken <- struct{}{}:
		if !t.done.Load() {
			return nil
		}
		t.leave()
	default:
		if !t.done.Load() {
			t.refused.Store(true)
			return tx.ErrConcurrentUse
		}
	}
	return tx.ErrDone
}

// last takes what nobody gets any more, and cuts off whoever is still at it: a goroutine that fn has left behind.
func (t *turn) last(cut func()) (first bool) {
	if t.done.Swap(true) {
		return false
	}
	select {
	case t.taken <- struct{}{}:
	default:
		t.refused.Store(true)
		cut()
		t.taken <- struct{}{}
	}
	return true
}

func (t *turn) leave() { <-t.taken }

// do runs fn in a turn of its own.
func (t *turn) do(fn func() error) error {
	if err := t.take(); err != nil {
		return err
	}
	defer t.leave()
	return fn()
}

// exclusive runs SQL when it is its caller's turn, which it keeps for one call: while rows are open, pgx itself refuses what comes in between.
type exclusive struct {
	turn  *turn
	inner Batcher
}

var _ Batcher = exclusive{}

func (e exclusive) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := e.turn.take(); err != nil {
		return pgconn.CommandTag{}, err
	}
	defer e.turn.leave()
	return e.inner.Exec(ctx, sql, args...)
}

func (e exclusive) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := e.turn.take(); err != nil {
		return failedRows{err}, err
	}
	defer e.turn.leave()
	r, err := e.inner.Query(ctx, sql, args...)
	return &exclusiveRows{Rows: r, turn: e.turn}, err
}

func (e exclusive) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	r, _ := e.Query(ctx, sql, args...)
	return row{r}
}

func (e exclusive) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := e.turn.take(); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	defer e.turn.leave()
	return &exclusiveBatch{e.inner.SendBatch(ctx, b), e.turn}
}

// exclusiveRows are not read after the end of their transaction either, when their connection is somebody else's.
type exclusiveRows struct {
	pgx.Rows
	turn    *turn
	refusal atomic.Pointer[error]
}

func (r *exclusiveRows) enter() error {
	err := r.turn.take()
	if err != nil {
		refusal := err // err itself would cost each row an allocation
		r.refusal.CompareAndSwap(nil, &refusal)
	}
	return err
}

func (r *exclusiveRows) Next() bool {
	if r.enter() != nil {
		return false
	}
	defer r.turn.leave()
	return r.Rows.Next()
}

func (r *exclusiveRows) Close() {
	if r.enter() == nil {
		defer r.turn.leave()
		r.Rows.Close()
	}
}

func (r *exclusiveRows) Err() error {
	if err := r.refusal.Load(); err != nil {
		return *err
	}
	if err := r.enter(); err != nil {
		return err
	}
	defer r.turn.leave()
	return r.Rows.Err()
}

func (r *exclusiveRows) Scan(dest ...any) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.turn.leave()
	return r.Rows.Scan(dest...)
}

func (r *exclusiveRows) Values() ([]any, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.turn.leave()
	return r.Rows.Values()
}

type exclusiveBatch struct {
	pgx.BatchResults
	turn *turn
}

func (b *exclusiveBatch) Exec() (pgconn.CommandTag, error) {
	if err := b.turn.take(); err != nil {
		return pgconn.CommandTag{}, err
	}
	defer b.turn.leave()
	return b.BatchResults.Exec()
}

func (b *exclusiveBatch) Query() (pgx.Rows, error) {
	if err := b.turn.take(); err != nil {
		return failedRows{err}, err
	}
	defer b.turn.leave()
	r, err := b.BatchResults.Query()
	return &exclusiveRows{Rows: r, turn: b.turn}, err
}

func (b *exclusiveBatch) QueryRow() pgx.Row {
	r, _ := b.Query()
	return row{r}
}

func (b *exclusiveBatch) Close() error {
	if err := b.turn.take(); err != nil {
		return err
	}
	defer b.turn.leave()
	return b.BatchResults.Close()
}
