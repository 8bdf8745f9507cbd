package postgres_test

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
)

// Messages come in any pieces, and what looks like a tag may be a value.
func TestTagsHoweverTheyArrive(t *testing.T) {
	type seen struct{ ended, rolledBack bool }
	tag := func(s string) pgproto3.BackendMessage { return &pgproto3.CommandComplete{CommandTag: []byte(s)} }
	value := &pgproto3.DataRow{Values: [][]byte{[]byte("C\x00\x00\x00\x0bCOMMIT\x00"), bytes.Repeat([]byte("C"), 10_000), {}, nil}}
	for name, k := range map[string]struct {
		messages []pgproto3.BackendMessage
		want     seen
	}{
		"nothing":               {nil, seen{}},
		"values":                {[]pgproto3.BackendMessage{value, tag("SELECT 1"), value, tag("INSERT 0 " + string(bytes.Repeat([]byte("9"), 40)))}, seen{}},
		"commit":                {[]pgproto3.BackendMessage{tag("SELECT 1"), value, tag("COMMIT"), tag("SELECT 1"), &pgproto3.ReadyForQuery{TxStatus: 'I'}}, seen{ended: true}},
		"prepare":               {[]pgproto3.BackendMessage{&pgproto3.ParseComplete{}, tag("PREPARE TRANSACTION")}, seen{ended: true}},
		"prepare of statements": {[]pgproto3.BackendMessage{tag("PREPARE")}, seen{}},
		"rollback":              {[]pgproto3.BackendMessage{value, tag("ROLLBACK"), &pgproto3.ReadyForQuery{TxStatus: 'T'}}, seen{rolledBack: true}},
		"begin":                 {[]pgproto3.BackendMessage{tag("BEGIN")}, seen{}},
		"rollback, begin":       {[]pgproto3.BackendMessage{tag("ROLLBACK"), &pgproto3.EmptyQueryResponse{}, tag("START TRANSACTION")}, seen{ended: true, rolledBack: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var stream []byte
			for _, m := range k.messages {
				var err error
				stream, err = m.Encode(stream)
				require.NoError(t, err)
			}
			for _, pieces := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader} {
				var got seen
				var err error
				got.ended, got.rolledBack, err = postgres.Tapped(pieces(bytes.NewReader(stream)))
				require.NoError(t, err)
				require.Equal(t, k.want, got)
			}
		})
	}
}
