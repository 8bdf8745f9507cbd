package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/fault"
)

// Batcher sends several statements in one round trip. A [*DB] does, each batch in an implicit transaction, and so does what
// [Querier] returns. The results must be closed. Beginning a transaction in the batch is refused.
type Batcher interface {
	DBTX
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

var (
	_ Batcher = (*DB)(nil)
	_ Batcher = querier{}
)

func (q querier) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := q.c.usable("postgres.SendBatch"); err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	q.c.limit(b.Len())
	var texts []string
	for _, queued := range b.QueuedQueries {
		q.c.changed = q.c.changed || outlasts(queued.SQL)
		texts = append(texts, queued.SQL)
		q.c.ended = q.c.ended || commits(queued.SQL) // whose tag nobody sees while the results are open
	}
	return &batch{
		BatchResults: q.c.tx.SendBatch(ctx, b),
		fail: func(err error) error {
			q.c.ran(texts...)
			return q.c.fail(ctx, "postgres.SendBatch", err)
		},
	}
}

// SendBatch implements [Batcher]. It keeps a connection until the results are closed. A stale plan is not tried again.
func (db *DB) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	pooled, err := db.acquire(ctx, "postgres.SendBatch")
	if err != nil {
		return pgx.FailedBatchResults(b, err)
	}
	db.limit(pooled.Conn().PgConn(), b.Len(), db.cfg.StatementTimeout)
	results := pooled.SendBatch(ctx, b)
	if results.Tx() != nil {
		_ = results.Close()
		pooled.Release() // destroys it: the transaction is open
		return pgx.FailedBatchResults(b, fault.Text("postgres: a batch must not begin a transaction; use tx.Runner and Querier"))
	}
	texts := make([]string, 0, b.Len())
	for _, queued := range b.QueuedQueries {
		texts = append(texts, queued.SQL)
	}
	return &batch{
		BatchResults: results,
		fail:         func(err error) error { return db.fail(ctx, pooled, "postgres.SendBatch", err) },
		release:      func() { db.release(ctx, pooled, texts...) },
	}
}

// batch translates the errors of pgx's results.
type batch struct {
	pgx.BatchResults
	fail    func(error) error
	release func() // gives the connection back; nil in a transaction
	closed  bool
	failure error
}

func (b *batch) Exec() (pgconn.CommandTag, error) {
	tag, err := b.BatchResults.Exec()
	return tag, b.fail(err)
}

func (b *batch) Query() (pgx.Rows, error) {
	inner, _ := b.BatchResults.Query() // the error is in the rows as well
	r := &rows{Rows: inner, fail: b.fail}
	return r, r.Err()
}

func (b *batch) QueryRow() pgx.Row {
	r, _ := b.Query()
	return row{r}
}

func (b *batch) Close() error {
	if b.closed {
		return b.failure
	}
	b.closed, b.failure = true, b.fail(b.BatchResults.Close())
	if b.release != nil {
		b.release()
	}
	return b.failure
}
