package postgres

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// serverError returns what the server said, of the error of any driver that has a SQLState method. Of lib/pq's, whose Get returns the fields
// of the protocol, it keeps as much as of pgx's; of others only the state.
func serverError(err error) (*pgconn.PgError, bool) {
	if pg, ok := err.(*pgconn.PgError); ok { //nolint:errorlint // a shortcut for the bare error; the chain comes next
		return pg, true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg, true
	}
	other, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if !ok || len(other.SQLState()) != 5 {
		return nil, false
	}
	pg := &pgconn.PgError{Code: other.SQLState()}
	if fields, ok := other.(interface{ Get(field byte) string }); ok {
		pg.Severity, pg.Routine = fields.Get('S'), fields.Get('R')
		pg.SchemaName, pg.TableName, pg.ColumnName = fields.Get('s'), fields.Get('t'), fields.Get('c')
		pg.ConstraintName, pg.DataTypeName = fields.Get('n'), fields.Get('d')
	}
	return pg, true
}
