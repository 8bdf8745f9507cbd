package pgidempotency_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/tx"
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

func TestStatementsReadLittle(t *testing.T) { readLittle(t, 50_000) }

// readLittle fails unless each statement reads of n records what it looks for, and not what there is.
func readLittle(t *testing.T, n int) {
	t.Helper()
	f := newFixture(t, "")
	db, err := postgres.Open(t.Context(), postgres.Config{DSN: f.owner, StatementTimeout: 5 * time.Minute}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) })
	_, err = db.Exec(t.Context(), `
		insert into caskeleton.idempotency_record (scope, key_version, route, fingerprint, state, owner, attempt, operation, revision,
			lease_expires_at, expires_at, payload, created_at, updated_at, executing_since)
		select sha256(i::text::bytea), case when i = $1 then '4' when i % 1000 > 0 then '2' else '1' end, 'POST /orders', sha256('x'),
			case i % 1000 when 0 then 'EXECUTING' when 1 then 'ABANDONED' when 2 then 'CLAIMED' else 'COMPLETED' end,
			'node', 1, i::text, 2, now() - interval '1 hour', now() - interval '1 minute', case when i % 1000 > 2 then '{}'::bytea end,
			now() - interval '2 days' + i * interval '1 millisecond', now(), case when i % 1000 <= 1 then now() end
		from generate_series(1, $1::int) i`, n)
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), f.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })

	scope := func(i int) []byte { s := sha256.Sum256([]byte(strconv.Itoa(i))); return s[:] }
	var fingerprint, none [32]byte
	claim := func(s []byte, former ...[]byte) []any {
		args := []any{s, "2", "", "POST /orders", fingerprint[:], "node", "op", int64(time.Minute / time.Microsecond), int64(time.Hour / time.Microsecond)}
		if former != nil {
			args = append(args, append([][]byte{s}, former...))
		}
		return args
	}
	const beginning = "0001-01-01"
	var middle time.Time
	require.NoError(t, db.QueryRow(t.Context(), `select created_at from caskeleton.idempotency_record where scope = $1`, scope(n/2)).Scan(&middle))
	for _, analysed := range []bool{false, true} {
		if analysed {
			_, err := db.Exec(t.Context(), `analyze caskeleton.idempotency_record`)
			require.NoError(t, err)
		}
		for what, s := range map[string]struct {
			sql  string
			args []any
			most int
		}{
			"a first claim":              {pgidempotency.ClaimSQL, claim(scope(0)), 100},
			"a first claim in rotation":  {pgidempotency.ClaimAmongSQL, claim(scope(0), scope(-1), scope(-2)), 150},
			"a replay":                   {pgidempotency.ClaimSQL, claim(scope(n/2 + 7)), 60},
			"a replay in rotation":       {pgidempotency.ClaimAmongSQL, claim(scope(0), scope(-1), scope(n/2+7)), 100},
			"a second look":              {pgidempotency.ReadSQL, []any{scope(n/2 + 7)}, 30},
			"a second look in rotation":  {pgidempotency.ReadAmongSQL, []any{[][]byte{scope(0), scope(n/2 + 7)}}, 60},
			"a takeover":                 {pgidempotency.TakeOverSQL, []any{scope(2), "node", 1, "2", 2, "other", "op", int64(1), int64(1)}, 100},
			"a start in rotation":        {pgidempotency.StartBesideSQL, []any{scope(2), "node", 1, "2", 2, append(scope(0), scope(-1)...)}, 100},
			"an execution in rotation":   {pgidempotency.ExecuteSQL, []any{scope(2), "node", 1, "2", 2, [][]byte{scope(0), scope(-1)}, int64(1)}, 150},
			"find under all versions":    {pgidempotency.FindSQL, []any{[][]byte{scope(0), scope(n/2 + 7)}}, 60},
			"list 10 abandoned":          {pgidempotency.ListFewSQL, []any{"ABANDONED", beginning, none[:], 10}, 200},
			"go on with the list":        {pgidempotency.ListFewSQL, []any{"ABANDONED", middle, none[:], 10}, 200},
			"list 10 completed":          {pgidempotency.ListManySQL, []any{"COMPLETED", beginning, none[:], 10}, 200},
			"abandon 10":                 {pgidempotency.ExpireSQL, []any{10}, 1000},
			"reap 10":                    {pgidempotency.ReapSQL, []any{beginning, none[:], 0, 10}, 1000},
			"objects that are referred":  {pgidempotency.LiveSQL, []any{[]string{"x", "y"}, [][]byte{scope(0), scope(n/2 + 7)}, []string{"op", "op"}}, 60},
			"100 of a version to retire": {pgidempotency.OfVersionSQL, []any{"3", beginning, none[:], 100}, 500},
		} {
			require.LessOrEqual(t, pages(t, conn, s.sql, s.args...), s.most, "%s among %d, analysed: %t", what, n, analysed)
		}
	}

	_, err = db.Exec(t.Context(), `insert into caskeleton.idempotency_key (version, check_value, ordinal) values ('1', '', 1), ('3', '', 3), ('4', '', 4)`)
	require.NoError(t, err)
	for version, done := range map[string]bool{"1": false, "3": true, "4": false} {
		require.NoError(t, f.runner.InRootWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			retired, err := f.records.Retire(ctx, tr, version)
			require.Equal(t, done, retired, version)
			return err
		}))
	}
}
