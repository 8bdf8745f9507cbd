package migrations

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

const leaseInsert = `insert into caskeleton.lock_lease (digest, region, name, token, acquired_at, expires_at)
	values (decode(repeat('00', 32), 'hex'), 'DEFAULT', 'k', decode(repeat('00', 16), 'hex'), now(), now())`

func TestLockLeaseConstraints(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, Lock())
	execSQL(t, dsn, leaseInsert)
	conn := connect(t, dsn)
	_, err := conn.Exec(t.Context(), leaseInsert)
	require.ErrorContains(t, err, "23505")
	_, err = conn.Exec(t.Context(), `update caskeleton.lock_lease set region = repeat('é', 200), name = repeat('é', 200)`)
	require.NoError(t, err)
	for _, set := range []string{`digest = ''`, `digest = decode(repeat('00', 33), 'hex')`, `token = ''`, `region = repeat('x', 201)`, `name = repeat('x', 201)`} {
		_, err := conn.Exec(t.Context(), `update caskeleton.lock_lease set `+set)
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr, set)
		require.Equal(t, "23514", pgErr.Code, set)
	}
}

func TestMarkingRenewingAndTakingLockLeasesIsHOT(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, Lock())
	execSQL(t, dsn, leaseInsert)
	tx, err := connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	for _, set := range []string{`contended = true`, `expires_at = clock_timestamp()`, `token = decode(repeat('01', 16), 'hex'), acquired_at = clock_timestamp()`} {
		_, err := tx.Exec(t.Context(), `update caskeleton.lock_lease set `+set)
		require.NoError(t, err)
	}
	var updates, hot int
	require.NoError(t, tx.QueryRow(t.Context(), `select pg_stat_get_xact_tuples_updated(o), pg_stat_get_xact_tuples_hot_updated(o)
		from (select 'caskeleton.lock_lease'::regclass::oid as o) t`).Scan(&updates, &hot))
	require.Equal(t, 3, updates)
	require.Equal(t, updates, hot)
	require.NoError(t, tx.Rollback(t.Context()))
}
