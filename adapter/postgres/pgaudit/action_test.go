package pgaudit_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgaudit"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/audit"
	"caskeleton.dev/audit/audittest"
	"caskeleton.dev/tx"
)

func openMode(t *testing.T, dsn, mode string) (*postgres.DB, *tx.Runner) {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn, ExecMode: mode}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) })
	runner, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	return db, runner
}

// state runs a statement, and returns the SQLSTATE of its error, "" for none.
func state(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		require.NoError(t, err)
		return ""
	}
	return refused.Code
}

// TestActionsConform as the runtime role, which may do no more than this.
func TestActionsConform(t *testing.T) {
	t.Parallel()
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			audittest.TestDriver(t, audittest.Harness{New: func(t *testing.T) audittest.Store {
				t.Helper()
				db, runner := openMode(t, migrationstest.RuntimeDSN(t, migrationstest.DSN(t)), mode)
				return audittest.Store{Driver: pgaudit.NewActions(db), Runner: runner}
			}})
		})
	}
}

var breaking = audit.Action{
	Operator: "ada", Verb: "lock.break", Kind: "lock", Subject: "invoices", Reason: "ticket-7", Changed: 1, After: json.RawMessage(`{"free":true}`),
}

// TestActionsAreAppendOnly: neither by right nor by mistake is one changed, deleted, back-dated or given another's number.
func TestActionsAreAppendOnly(t *testing.T) {
	t.Parallel()
	dsn := migrationstest.DSN(t)
	runtime := migrationstest.RuntimeDSN(t, dsn)
	db, runner := openMode(t, runtime, "")
	before := time.Now()
	require.NoError(t, runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error { return pgaudit.NewActions(db).Record(ctx, tr, breaking) }))
	owner, service := pgtest.Connect(t, dsn), pgtest.Connect(t, runtime)
	for _, sql := range []string{
		`update caskeleton.operator_action set reason = 'another'`, `update caskeleton.operator_action set operator = 'bob' where false`,
		`delete from caskeleton.operator_action`, `delete from caskeleton.operator_action where false`, `truncate caskeleton.operator_action`,
	} {
		require.Equal(t, "42501", state(t, service, sql), "as the runtime role: %s", sql)
		require.Equal(t, "55000", state(t, owner, sql), "as the owner: %s", sql)
	}
	const rest = `operator, verb, kind, subject, reason, changed) `
	for _, sql := range []string{
		`insert into caskeleton.operator_action (acted_at, ` + rest + `values ('2020-01-01', 'ada', 'v', 'k', 's', 'r', 1)`,
		`insert into caskeleton.operator_action (id, ` + rest + `overriding system value values (7, 'ada', 'v', 'k', 's', 'r', 1)`,
		`alter table caskeleton.operator_action disable trigger kept`, `drop table caskeleton.operator_action`,
	} {
		require.Equal(t, "42501", state(t, service, sql), sql)
	}
	var reason string
	var at time.Time
	require.NoError(t, owner.QueryRow(t.Context(), `select reason, acted_at from caskeleton.operator_action`).Scan(&reason, &at))
	require.Equal(t, breaking.Reason, reason)
	require.WithinRange(t, at, before.Add(-time.Minute), time.Now().Add(time.Minute))

	// Old ones go as the reference page says, and the others stay.
	_, err := owner.Exec(t.Context(), `insert into caskeleton.operator_action (acted_at, `+rest+`values ('2001-02-03', 'ada', 'v', 'k', 's', 'old', 1)`)
	require.NoError(t, err)
	text, err := os.ReadFile("../../../docs/reference/operator-actions.md")
	require.NoError(t, err)
	statements := regexp.MustCompile(`(?ms)^    (?:select|begin|alter|delete|commit).*?;$`).FindAllString(string(text), -1)
	require.Len(t, statements, 6)
	for _, statement := range statements {
		_, err := owner.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	require.Equal(t, "55000", state(t, owner, `truncate caskeleton.operator_action`))
	require.NoError(t, owner.QueryRow(t.Context(), `select string_agg(reason, ' ') from caskeleton.operator_action`).Scan(&reason))
	require.Equal(t, breaking.Reason, reason)
}

// TestTheTableTakesOnlyWhatSaysEnough, whoever writes it.
func TestTheTableTakesOnlyWhatSaysEnough(t *testing.T) {
	t.Parallel()
	owner := pgtest.Connect(t, migrationstest.DSN(t))
	for values, want := range map[string]string{
		`'ada', 'v', 'k', 's', null, 'r', 0`:                            "",
		`'ada', 'v', 'k', null, '{}', 'r', 0`:                           "",
		`'', 'v', 'k', 's', null, 'r', 0`:                               "23514",
		`'ada', '', 'k', 's', null, 'r', 0`:                             "23514",
		`'ada', 'v', '', 's', null, 'r', 0`:                             "23514",
		`'ada', 'v', 'k', 's', null, '', 0`:                             "23514",
		`'ada', 'v', 'k', null, null, 'r', 0`:                           "23514",
		`'ada', 'v', 'k', 's', null, 'r', -1`:                           "23514",
		`'ada', 'v', 'k', repeat('x', 1001), null, 'r', 1`:              "23514",
		`'ada', 'v', repeat('x', 101), repeat('x', 1000), null, 'r', 1`: "23514",
		`'ada', 'v', repeat('x', 100), repeat('x', 1000), null, 'r', 1`: "",
	} {
		require.Equal(t, want, state(t, owner, `insert into caskeleton.operator_action (operator, verb, kind, subject, filter, reason, changed) values (`+values+`)`), values)
	}
}

// A row of one command that worked in batches is known by its act.
func TestRowsOfOneCommandCanBeTold(t *testing.T) {
	t.Parallel()
	runtime := pgtest.Connect(t, migrationstest.RuntimeDSN(t, migrationstest.DSN(t)))
	_, err := runtime.Exec(t.Context(), `
		insert into caskeleton.operator_action (act, operator, verb, kind, filter, reason, changed)
		select '0199e1a0-0000-7000-8000-000000000000', 'ada', 'outbox.requeue', 'outbox_dead', '{"type":"order.placed"}', 'fixed', 500 from generate_series(1, 3)`)
	require.NoError(t, err)
	_, err = runtime.Exec(t.Context(), `insert into caskeleton.operator_action (operator, verb, kind, subject, reason, changed) select 'ada', 'v', 'k', 's', 'r', 1 from generate_series(1, 2)`)
	require.NoError(t, err)
	rows, err := runtime.Query(t.Context(), `select sum(changed)::bigint from caskeleton.operator_action group by act order by 1`)
	require.NoError(t, err)
	sums, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	require.NoError(t, err)
	require.Equal(t, []int64{1, 1, 1500}, sums)
}

// An action can ride in a transaction that its caller began, of any driver.
func TestRecordInATransactionOfACaller(t *testing.T) {
	t.Parallel()
	dsn := migrationstest.RuntimeDSN(t, migrationstest.DSN(t))
	db, _ := openMode(t, dsn, "")
	actions := pgaudit.NewActions(db)
	cfg, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	pool := stdlib.OpenDB(*cfg)
	t.Cleanup(func() { _ = pool.Close() })
	for _, commit := range []bool{false, true} {
		h, err := pool.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		tr, j, err := postgres.Wrap(t.Context(), h)
		require.NoError(t, err)
		require.NoError(t, actions.Record(t.Context(), tr, breaking))
		if commit {
			require.NoError(t, h.Commit())
			require.NoError(t, j.Committed(t.Context()))
		} else {
			require.NoError(t, h.Rollback())
			j.RolledBack()
		}
		kept, err := actions.Of(t.Context(), breaking.Kind, breaking.Subject, 10)
		require.NoError(t, err)
		require.Equal(t, commit, len(kept) == 1)
	}
	pgtest.RequirePortable(t, dsn, pgaudit.RecordSQL)
}

func TestATransactionOfAnotherDriverIsRefused(t *testing.T) {
	t.Parallel()
	db, _ := openMode(t, migrationstest.DSN(t), "")
	other, err := tx.NewRunner(memory.Transactions{}, nil)
	require.NoError(t, err)
	require.Error(t, other.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error { return pgaudit.NewActions(db).Record(ctx, tr, breaking) }))
}
