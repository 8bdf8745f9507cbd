package migrations

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

const recordInsert = `insert into caskeleton.idempotency_record (scope, key_version, route, fingerprint, state, owner, attempt, operation, revision,
	lease_expires_at, expires_at, created_at, updated_at) values (decode(repeat('ab', 32), 'hex'), 'v1', 'POST /orders', decode(repeat('cd', 32), 'hex'),
	'CLAIMED', 'node-1', 1, '6ba7b810-9dad-11d1-80b4-00c04fd430c8', 1, now(), now(), now(), now())`

func insertRecord(t *testing.T, dsn string) {
	t.Helper()
	execSQL(t, dsn, recordInsert)
}

func TestIdempotencyRecordConstraints(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, Idempotency())
	insertRecord(t, dsn)
	conn := connect(t, dsn)
	for _, set := range []string{
		`scope = '\x00'`, `fingerprint = '\x00'`, `state = 'claimed'`, `attempt = 0`,
		`state = 'COMPLETED'`, `state = 'FAILED'`, `payload = 'x'`, `state = 'ABANDONED', payload_ref = 'x'`,
		`state = 'COMPLETED', payload = 'x', payload_ref = 'x'`,
		`state = 'EXECUTING'`, `executing_since = now()`, `state = 'COMPLETED', payload = 'x', executing_since = now()`,
	} {
		_, err := conn.Exec(t.Context(), `update caskeleton.idempotency_record set `+set)
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr, set)
		require.Equal(t, "23514", pgErr.Code, set)
	}
	for _, set := range []string{
		`state = 'EXECUTING', executing_since = now()`, `state = 'COMPLETED', executing_since = null, payload = 'x'`,
		`state = 'FAILED', payload = null, payload_ref = 'x'`, `state = 'ABANDONED', payload_ref = null, executing_since = now()`,
	} {
		_, err := conn.Exec(t.Context(), `update caskeleton.idempotency_record set `+set)
		require.NoError(t, err, set)
	}
	_, err := conn.Exec(t.Context(), recordInsert)
	require.ErrorContains(t, err, "23505")
}

func TestIdempotencyRecordUpdatesAreHOT(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, Idempotency())
	insertRecord(t, dsn)
	tx, err := connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	for _, set := range []string{
		`lease_expires_at = clock_timestamp(), owner = 'node-2', attempt = 2, operation = gen_random_uuid()::text, revision = 3`,
		`state = 'COMPLETED', payload = 'x', expires_at = clock_timestamp(), revision = 4`,
	} {
		_, err := tx.Exec(t.Context(), `update caskeleton.idempotency_record set `+set)
		require.NoError(t, err)
	}
	var updates, hot int
	require.NoError(t, tx.QueryRow(t.Context(), `select pg_stat_get_xact_tuples_updated(o), pg_stat_get_xact_tuples_hot_updated(o)
		from (select 'caskeleton.idempotency_record'::regclass::oid as o) t`).Scan(&updates, &hot))
	require.Equal(t, 2, updates)
	require.Equal(t, updates, hot)
	require.NoError(t, tx.Rollback(t.Context()))
}
