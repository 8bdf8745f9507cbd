package pgidempotency_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/pgidempotency"
)

// node is what EXPLAIN says of one step of a plan.
type node struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Hit      int    `json:"Shared Hit Blocks"`
	Read     int    `json:"Shared Read Blocks"`
	Plans    []node `json:"Plans"`
}

// pages runs a statement under EXPLAIN ANALYZE, rolls it back, fails if it reads all of the records, and returns how many pages it looked at.
func pages(t *testing.T, conn *pgx.Conn, sql string, args ...any) int {
	t.Helper()
	trx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, trx.Rollback(context.WithoutCancel(t.Context()))) }()
	var text string
	require.NoError(t, trx.QueryRow(t.Context(), `explain (analyze, buffers, format json) `+sql, append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&text))
	var plans []struct{ Plan node }
	require.NoError(t, json.Unmarshal([]byte(text), &plans))
	var walk func(n node)
	walk = func(n node) {
		require.False(t, n.Type == "Seq Scan" && n.Relation == "idempotency_record", text)
		for _, c := range n.Plans {
			walk(c)
		}
	}
	walk(plans[0].Plan)
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// TestOperatorsAndTheReaperReadLittle of many records: what they look for, and not what there is.
func TestOperatorsAndTheReaperReadLittle(t *testing.T) {
	f := newFixture(t, "")
	_, err := f.db.Exec(t.Context(), `
		insert into caskeleton.idempotency_record (scope, key_version, route, fingerprint, state, owner, attempt, operation, revision,
			lease_expires_at, expires_at, payload, created_at, updated_at, executing_since)
		select sha256(i::text::bytea), '1', 'POST /orders', sha256('x'), case when i % 1000 > 1 then 'COMPLETED' when i % 1000 = 1 then 'ABANDONED' else 'EXECUTING' end,
			'node', 1, i::text, 2, now() - interval '1 hour', now() - interval '1 minute', case when i % 1000 > 1 then '{}'::bytea end,
			now() - interval '2 days' + i * interval '1 millisecond', now(), case when i % 1000 <= 1 then now() end
		from generate_series(1, 50000) i`)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), f.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	beginning := make([]byte, 32)
	for _, analysed := range []bool{false, true} {
		if analysed {
			_, err := f.db.Exec(t.Context(), `analyze caskeleton.idempotency_record`)
			require.NoError(t, err)
		}
		require.Less(t, pages(t, conn, pgidempotency.FindSQL, [][]byte{beginning}), 20, "find one of 50,000")
		require.Less(t, pages(t, conn, pgidempotency.ListFewSQL, "ABANDONED", "0001-01-01", beginning, 10), 200, "list 10 of 50 abandoned ones")
		require.Less(t, pages(t, conn, pgidempotency.ExpireSQL, 10), 1000, "abandon 10 of 50 executions")
		require.Less(t, pages(t, conn, pgidempotency.ReapSQL, "0001-01-01", beginning, 0, 10), 1000, "reap 10 of 50,000")
	}
}
