package postgres

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"caskeleton.dev/fault"
)

// sqlRows are rows of database/sql behind pgx's interface. They have no raw values, and of their columns only the names.
type sqlRows struct {
	*sql.Rows
	closing error
}

var _ pgx.Rows = &sqlRows{}

func (r *sqlRows) Close() {
	if err := r.Rows.Close(); err != nil {
		r.closing = err
	}
}

func (r *sqlRows) Err() error { return cmp.Or(r.Rows.Err(), r.closing) }

func (*sqlRows) CommandTag() pgconn.CommandTag { return pgconn.CommandTag{} }
func (*sqlRows) RawValues() [][]byte           { return nil }
func (*sqlRows) Conn() *pgx.Conn               { return nil }
func (*sqlRows) TypeMap() *pgtype.Map          { return nil }

func (r *sqlRows) FieldDescriptions() []pgconn.FieldDescription {
	names, err := r.Columns()
	if err != nil {
		return nil
	}
	fields := make([]pgconn.FieldDescription, len(names))
	for i, name := range names {
		fields[i].Name = name
	}
	return fields
}

func (r *sqlRows) Values() ([]any, error) {
	names, err := r.Columns()
	if err != nil {
		return nil, err
	}
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	return values, r.Scan(into...)
}

// sqlBatch is a batch that takes a round trip a statement. After an error nothing more is sent.
type sqlBatch struct {
	ctx    context.Context //nolint:containedctx // a batch has the one it was sent with
	q      joinedSQL
	queued []*pgx.QueuedQuery
	open   pgx.Rows
	err    error
	closed bool
}

// next is the statement whose result is asked for.
func (b *sqlBatch) next() (*pgx.QueuedQuery, error) {
	if b.open != nil {
		b.open.Close()
		b.keep(b.open.Err())
		b.open = nil
	}
	switch {
	case b.err != nil:
		return nil, b.err
	case b.closed:
		return nil, fault.Text("postgres: the batch is closed")
	case len(b.queued) == 0:
		return nil, fault.Text("postgres: the batch has no more results")
	}
	first := b.queued[0]
	b.queued = b.queued[1:]
	return first, nil
}

func (b *sqlBatch) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *sqlBatch) Exec() (pgconn.CommandTag, error) {
	s, err := b.next()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := b.q.Exec(b.ctx, s.SQL, s.Arguments...)
	b.keep(err)
	return tag, err
}

func (b *sqlBatch) Query() (pgx.Rows, error) {
	s, err := b.next()
	if err != nil {
		return failedRows{err}, err
	}
	rows, err := b.q.Query(b.ctx, s.SQL, s.Arguments...)
	b.open = rows
	b.keep(err)
	return rows, err
}

func (b *sqlBatch) QueryRow() pgx.Row {
	r, _ := b.Query()
	return row{r}
}

func (b *sqlBatch) Close() error {
	for !b.closed && b.err == nil && len(b.queued) > 0 {
		if fn := b.queued[0].Fn; fn != nil {
			b.keep(fn(b))
			continue
		}
		_, _ = b.Exec() // which keeps its error
	}
	if b.open != nil {
		_, _ = b.next()
	}
	b.closed = true
	return b.err
}

// Tx is nil: nothing is begun in a transaction.
func (*sqlBatch) Tx() pgx.Tx { return nil }
