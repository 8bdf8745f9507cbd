package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"caskeleton.dev/fault"
)

// rows translates the errors of pgx's rows, many of which come only with the first row or the end.
type rows struct {
	pgx.Rows
	fail    func(error) error
	stale   func(error) bool
	again   func() pgx.Rows // runs the query once more; nil where that is not, or no longer, allowed
	release func()          // gives the connection back; nil in a transaction
	failure error           // what Err returns once closed
	closed  bool
}

func (r *rows) Next() bool {
	for {
		if r.Rows.Next() {
			r.again = nil
			return true
		}
		if !r.rerun() {
			r.Close()
			return false
		}
	}
}

// rerun repeats the query after a stale plan, which PostgreSQL refuses before the first row.
func (r *rows) rerun() bool {
	if r.again == nil || !r.stale(r.Rows.Err()) {
		return false
	}
	r.Rows, r.again = r.again(), nil
	return true
}

func (r *rows) Close() {
	if r.closed {
		return
	}
	r.Rows.Close()
	if r.rerun() {
		r.Rows.Close()
	}
	r.closed, r.failure = true, r.fail(r.Rows.Err())
	if r.release != nil {
		r.release()
	}
}

func (r *rows) Err() error {
	if r.closed {
		return r.failure
	}
	if r.Rows.Err() != nil { // pgx has closed them
		r.Close()
		return r.failure
	}
	return nil
}

func (r *rows) Scan(dest ...any) error {
	if err := r.Rows.Scan(dest...); err != nil {
		return r.broken(err)
	}
	return nil
}

func (r *rows) Values() ([]any, error) {
	v, err := r.Rows.Values()
	if err != nil {
		return nil, r.broken(err)
	}
	return v, nil
}

// broken closes the rows after an error of reading one, as pgx does. What was closed before has no connection any more to look at.
func (r *rows) broken(err error) error {
	r.Close()
	if r.failure != nil {
		return r.failure
	}
	return diagnose(err)
}

// row is the first of rows.
type row struct{ rows pgx.Rows }

func (r row) Scan(dest ...any) error {
	defer r.rows.Close()
	for _, d := range dest {
		if _, ok := d.(*pgtype.DriverBytes); ok {
			return fault.Text("postgres: *pgtype.DriverBytes is not valid after Scan of a single row; scan into []byte")
		}
	}
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}

// failedRows are the rows of a query that never ran.
type failedRows struct{ err error }

func (failedRows) Close()                                       {}
func (r failedRows) Err() error                                 { return r.err }
func (failedRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (failedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (failedRows) Next() bool                                   { return false }
func (r failedRows) Scan(...any) error                          { return r.err }
func (r failedRows) Values() ([]any, error)                     { return nil, r.err }
func (failedRows) RawValues() [][]byte                          { return nil }
func (failedRows) Conn() *pgx.Conn                              { return nil }
func (failedRows) TypeMap() *pgtype.Map                         { return nil }
