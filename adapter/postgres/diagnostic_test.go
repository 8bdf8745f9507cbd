package postgres_test

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/tx"
)

// The server names what is missing in its message alone, which is left out.
func TestADiagnosticOfAMissingNameSaysWhatToLookAt(t *testing.T) {
	db := shop(t, postgres.Config{})
	for sql, says := range map[string]string{
		"select id from items":    "SQLSTATE 42P01 severity=ERROR routine=parserOpenTable: no such table: the kit's sessions have an empty search_path, so its name needs its schema; ",
		"select nothing_at_all()": "so its name needs its schema",
		"select '1'::mood":        "the name of a type needs its schema",
	} {
		_, err := db.Exec(t.Context(), sql)
		require.ErrorContains(t, err, says)
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("failed", "error", err)
		require.Contains(t, log.String(), "needs its schema")
	}
	err := inTx(t, db, tx.Options{}, func(q transaction) error {
		_, err := q.Exec(t.Context(), "select 1/0")
		require.Error(t, err)
		_, err = q.Exec(t.Context(), "select 1")
		return err
	})
	require.ErrorContains(t, err, "25P02")
	require.ErrorContains(t, err, "an earlier statement of the transaction failed")
}
