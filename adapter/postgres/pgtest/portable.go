package pgtest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"
)

// RequirePortable fails the test unless the statements, prepared in the database at dsn, take only parameters that every driver can send in a
// transaction of its caller's: drivers disagree about arrays, and about most other types.
func RequirePortable(tb testing.TB, dsn string, statements ...string) {
	tb.Helper()
	conn := Connect(tb, dsn)
	for _, sql := range statements {
		d, err := conn.Prepare(tb.Context(), "", sql)
		require.NoError(tb, err)
		require.Subset(tb, []uint32{pgtype.TextOID, pgtype.ByteaOID, pgtype.Int8OID, pgtype.BoolOID, pgtype.TimestamptzOID, pgtype.JSONBOID}, d.ParamOIDs, sql)
	}
}
