package migrations_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/migrations"
)

// TestTheRunbookKnowsEachRefusal, by the words that the error begins with.
func TestTheRunbookKnowsEachRefusal(t *testing.T) {
	text, err := os.ReadFile("../../../docs/runbooks/migration-failure.md")
	require.NoError(t, err)
	for _, refusal := range []error{
		migrations.ErrBehind, migrations.ErrAhead, migrations.ErrChanged, migrations.ErrLate, migrations.ErrMissing, migrations.ErrHistoryLost, migrations.ErrLocked,
	} {
		require.Contains(t, string(text), "| `"+refusal.Error()+"`")
	}
}
