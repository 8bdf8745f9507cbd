//go:build e2e

package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// TestThroughPgBouncer runs the tests of transactions that run in each mode again, through PgBouncer in transaction mode.
func TestThroughPgBouncer(t *testing.T) {
	pgtest.ThroughPgBouncer(t, &execModes, &through, map[string]func(*testing.T){
		"Conformance":                  TestConformance,
		"InTxOutOfTime":                TestInTxOutOfTime,
		"InTxWaits":                    TestInTxWaits,
		"InTxCanceled":                 TestInTxCanceled,
		"BeginAppliesItsOptions":       TestBeginAppliesItsOptions,
		"CommitAndRollback":            TestCommitAndRollback,
		"Savepoints":                   TestSavepoints,
		"ReadOnlySavepoint":            TestReadOnlySavepoint,
		"SQLCannotLeaveAReadOnlyScope": TestSQLCannotLeaveAReadOnlyScope,
		"SQLThatEndsTheTransaction":    TestSQLThatEndsTheTransaction,
		"FailedCommits":                TestFailedCommits,
		"SerializationFailureAtCommit": TestSerializationFailureAtCommit,
		"Batch":                        TestBatch,
		"StalePlanIsTriedOnceMore":     TestStalePlanIsTriedOnceMore,
		"OtherErrorsAreNotTriedAgain":  TestOtherErrorsAreNotTriedAgain,
	})
}

func TestSettingsBehindPgBouncer(t *testing.T) {
	direct := pgtest.DSN(t)
	dsn := pgtest.PgBouncer(t, direct)
	exec(t, open(t, postgres.Config{DSN: direct}), "create table public.seen (n int)")
	for _, mode := range pgtest.PoolerModes(t) {
		t.Run(mode, func(t *testing.T) {
			db := open(t, postgres.Config{DSN: dsn, ExecMode: mode, MaxConns: 2, StatementTimeout: 7 * time.Second, LockTimeout: 2 * time.Second, IdleTxTimeout: 6 * time.Second})
			c := begin(t, db, tx.BeginOptions{Options: tx.Options{Isolation: tx.RepeatableRead, LockTimeout: time.Second}, ReadOnly: true})
			for setting, want := range map[string]string{
				"search_path": `""`, "TimeZone": "UTC", "statement_timeout": "7s", "lock_timeout": "1s", "idle_in_transaction_session_timeout": "6s",
				"transaction_isolation": "repeatable read", "transaction_read_only": "on",
			} {
				require.Equal(t, want, get[string](t, c, "select current_setting($1)", setting), setting)
			}
			require.NoError(t, c.Commit(t.Context()))
			for setting, want := range map[string]string{"statement_timeout": "10s", "lock_timeout": "3s"} {
				require.Equal(t, want, get[string](t, db, "select current_setting($1)", setting), "the database's own again: "+setting)
			}
		})
	}
}

// forgetful are the settings of a PgBouncer that loses prepared statements, as any does before 1.21.
func forgetful(t *testing.T) (settings []string) {
	t.Helper()
	if slices.Contains(pgtest.PoolerModes(t), "cache_statement") {
		settings = append(settings, "max_prepared_statements = 0")
	}
	return settings
}

func TestCacheStatementIsRefusedWherePgBouncerLosesStatements(t *testing.T) {
	_, err := postgres.Open(t.Context(), postgres.Config{DSN: pgtest.PgBouncer(t, pgtest.DSN(t), forgetful(t)...)}, nil)
	var e *postgres.ConfigError
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Problems, 1)
	require.Equal(t, "ExecMode", e.Problems[0].Field)
	require.ErrorContains(t, err, "APP_DB_EXEC_MODE")
}

func TestARoleWithoutTimeoutsIsRefusedBehindPgBouncer(t *testing.T) {
	dsn := pgtest.DSN(t)
	exec(t, open(t, postgres.Config{DSN: dsn}), "do $$ begin execute format('alter database %I set default_transaction_isolation = serializable', current_database()); end $$")
	_, err := postgres.Open(t.Context(), postgres.Config{DSN: pgtest.PgBouncerAlone(t, dsn, forgetful(t)...)}, nil)
	var e *postgres.ConfigError
	require.ErrorAs(t, err, &e)
	var fields []string
	for _, p := range e.Problems {
		fields = append(fields, p.Field)
	}
	require.Equal(t, []string{"ExecMode", "StatementTimeout", "LockTimeout", "DSN"}, fields, "all at once")
	require.ErrorContains(t, err, "migrate grants")
	require.ErrorContains(t, err, "is serializable")
}

// Clients share servers there, so that what one leaves behind another would meet.
func TestManyTransactionsThroughPgBouncer(t *testing.T) {
	direct := pgtest.DSN(t)
	dsn := pgtest.PgBouncer(t, direct)
	exec(t, open(t, postgres.Config{DSN: direct}), "create table public.counter (n int8 not null); insert into public.counter values (0)")
	for _, mode := range pgtest.PoolerModes(t) {
		t.Run(mode, func(t *testing.T) {
			db := open(t, postgres.Config{DSN: dsn, ExecMode: mode, MaxConns: 8})
			exec(t, db, "update public.counter set n = 0")
			runner, err := tx.NewRunner(db, nil)
			require.NoError(t, err)
			done := make(chan error)
			for range 8 {
				go func() {
					for range 25 {
						if err := runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
							q, err := postgres.Querier(tr)
							if err != nil {
								return err
							}
							_, err = q.Exec(ctx, "update public.counter set n = n + $1::int8", 1)
							return err
						}); err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			for range 8 {
				require.NoError(t, <-done)
			}
			require.EqualValues(t, 200, get[int64](t, db, "select n from public.counter"))
		})
	}
}

func TestADedicatedSessionLeadsPastPgBouncer(t *testing.T) {
	direct := pgtest.DSN(t)
	db := open(t, postgres.Config{DSN: pgtest.PgBouncer(t, direct), ExecMode: "exec"})
	_, err := db.Dedicated(t.Context(), "")
	require.ErrorContains(t, err, "a pooler stands between")
	conn, err := db.Dedicated(t.Context(), direct)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	var timeout string
	require.NoError(t, conn.QueryRow(t.Context(), "show lock_timeout").Scan(&timeout))
	require.Equal(t, "3s", timeout, "with the settings of any direct session")
}

// A pooler that keeps statements keeps their plans, for all of its clients.
func TestStalePlansStayWithPgBouncer(t *testing.T) {
	migrator := shop(t, postgres.Config{})
	pooled := pgtest.PgBouncer(t, migrator.Config().DSN)
	for _, mode := range pgtest.PoolerModes(t) {
		db := open(t, postgres.Config{DSN: pooled, MaxConns: 1, ExecMode: mode})
		again := func() error {
			return inTx(t, db, tx.Options{}, func(q transaction) error {
				_, err := query(t, q, "select * from shop.parents where id = $1 -- "+mode, 1)
				return err
			})
		}
		require.NoError(t, again())
		exec(t, migrator, "alter table shop.parents add column "+mode+" text")
		first, second := again(), again()
		if mode != "cache_statement" {
			require.NoError(t, second, mode)
			continue
		}
		require.ErrorIs(t, first, fault.DBStalePlan)
		require.ErrorIs(t, second, fault.DBStalePlan, "until RECONNECT")
		_, err := query(t, db, "select * from shop.parents where id = $1 -- "+mode, 1)
		require.NoError(t, err, "outside of a transaction")
	}
}
