package pgaudit_test

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgaudit"
	"caskeleton.dev/adapter/postgres/pgtest"
)

// node is what EXPLAIN says of one step of a plan.
type node struct {
	Type  string `json:"Node Type"`
	Index string `json:"Index Name"`
	Hit   int    `json:"Shared Hit Blocks"`
	Read  int    `json:"Shared Read Blocks"`
	Plans []node `json:"Plans"`
}

// TestActionsOnOneSubjectAreReadFromTheIndex, whatever the planner knows of the table: of many in all, and of many on the one subject, those
// that are asked for.
func TestActionsOnOneSubjectAreReadFromTheIndex(t *testing.T) {
	t.Parallel()
	conn := pgtest.Connect(t, migrationstest.DSN(t))
	_, err := conn.Exec(t.Context(), `
		insert into caskeleton.operator_action (operator, verb, kind, subject, reason, changed)
		select 'ada', 'lock.break', 'lock', case when i % 10 = 0 then 'often' else sha256(i::text::bytea)::text end, 'ticket-' || i, 1 from generate_series(1, 50000) i`)
	require.NoError(t, err)
	for _, analysed := range []bool{false, true} {
		if analysed {
			_, err := conn.Exec(t.Context(), `analyze caskeleton.operator_action`)
			require.NoError(t, err)
		}
		for _, subject := range []string{"often", "never"} {
			var text string
			require.NoError(t, conn.QueryRow(t.Context(), `explain (analyze, buffers, format json) `+pgaudit.OfSQL, pgx.QueryExecModeExec, "lock", subject, 20).Scan(&text))
			var plans []struct{ Plan node }
			require.NoError(t, json.Unmarshal([]byte(text), &plans))
			var types []string
			var walk func(n node)
			walk = func(n node) {
				types = append(types, n.Type)
				if n.Type == "Index Scan Backward" || n.Type == "Index Scan" {
					require.Equal(t, "operator_action_subject", n.Index, text)
				}
				for _, c := range n.Plans {
					walk(c)
				}
			}
			walk(plans[0].Plan)
			require.NotContains(t, types, "Seq Scan", text)
			require.NotContains(t, types, "Sort", text)
			require.Less(t, plans[0].Plan.Hit+plans[0].Plan.Read, 40, "20 of 5,000 on one subject: %s", text)
		}
	}
}
