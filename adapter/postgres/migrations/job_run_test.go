package migrations

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func TestJobRunConstraints(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, Lock())
	const insert = `insert into caskeleton.job_run (job, slot, instance, started_at, deadline) values ('job', '2026-01-01', 'a', now(), now())`
	execSQL(t, dsn, insert)
	conn := connect(t, dsn)
	_, err := conn.Exec(t.Context(), insert)
	require.ErrorContains(t, err, "23505", "a slot has one row")
	for set, ok := range map[string]bool{
		`job = repeat('é', 100), instance = repeat('é', 200), reason = repeat('é', 500)`: true,
		`job = ''`: false, `job = repeat('x', 101)`: false, `instance = ''`: false, `instance = repeat('x', 201)`: false, `reason = repeat('x', 501)`: false,
		`finished_at = now()`: false, `outcome = 'failed'`: false,
		`finished_at = now(), outcome = 'running'`: false, `finished_at = now(), outcome = 'abandoned'`: false,
		`finished_at = now(), outcome = 'succeeded'`: true, `finished_at = now(), outcome = 'failed'`: true, `finished_at = now(), outcome = 'overran'`: true,
		`finished_at = now(), outcome = 'stopped'`: true, `finished_at = now(), outcome = 'skipped'`: true,
	} {
		tx, err := conn.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `update caskeleton.job_run set `+set)
		if ok {
			require.NoError(t, err, set)
		} else {
			var pgErr *pgconn.PgError
			require.ErrorAs(t, err, &pgErr, set)
			require.Equal(t, "23514", pgErr.Code, set)
		}
		require.NoError(t, tx.Rollback(t.Context()))
	}
}
