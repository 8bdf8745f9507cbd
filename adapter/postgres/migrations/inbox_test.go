package migrations

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

const (
	messageInsert = `insert into caskeleton.inbox_message (consumer, message_id, state, attempts, received_at) values ('shipping', 'm1', 'RECEIVED', 1, now())`
	messageParked = `state = 'RECOVERY_REQUIRED', completed_at = null, parked_at = now(), reason = 'INTERNAL', type = '', aggregate_type = '', aggregate_id = '',
		sequence = 0, content_type = '', headers = '{}', payload = ''`
	messageCompleted = `state = 'COMPLETED', completed_at = now(), parked_at = null, reason = null, type = null, aggregate_type = null, aggregate_id = null,
		sequence = null, content_type = null, headers = null, payload = null`
)

func TestInboxMessageConstraints(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, Inbox())
	execSQL(t, dsn, messageInsert)
	conn := connect(t, dsn)
	refused := func(sets ...string) {
		t.Helper()
		for _, set := range sets {
			_, err := conn.Exec(t.Context(), `update caskeleton.inbox_message set `+set)
			var pgErr *pgconn.PgError
			require.ErrorAs(t, err, &pgErr, set)
			require.Equal(t, "23514", pgErr.Code, set)
		}
	}
	accepted := func(sets ...string) {
		t.Helper()
		for _, set := range sets {
			_, err := conn.Exec(t.Context(), `update caskeleton.inbox_message set `+set)
			require.NoError(t, err, set)
		}
	}
	accepted(`consumer = repeat('é', 255), message_id = repeat('é', 255)`)
	refused(`consumer = ''`, `consumer = repeat('x', 256)`, `message_id = ''`, `message_id = repeat('x', 256)`, `state = 'received'`, `state = 'PROCESSING'`)
	message := []string{`parked_at = now()`, `reason = ''`, `type = ''`, `aggregate_type = ''`, `aggregate_id = ''`, `sequence = 0`, `content_type = ''`, `headers = '{}'`, `payload = ''`}

	refused(message...) // RECEIVED
	refused(`attempts = 0`, `completed_at = now()`)
	accepted(messageCompleted+`, attempts = 0`, messageCompleted+`, attempts = 3`)
	refused(message...)
	refused(`attempts = -1`, `completed_at = null`)
	accepted(messageParked)
	refused(`parked_at = null`, `reason = null`, `type = null`, `aggregate_type = null`, `aggregate_id = null`, `sequence = null`, `content_type = null`,
		`headers = null`, `payload = null`, `attempts = 0`, `completed_at = now()`, `headers = '[]'`, `reason = repeat('x', 501)`)
	accepted(`reason = repeat('é', 500)`)
	_, err := conn.Exec(t.Context(), messageInsert)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), messageInsert)
	require.ErrorContains(t, err, "23505")
}

func TestCountingAndParkingInboxMessagesIsHOT(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, Inbox())
	execSQL(t, dsn, messageInsert)
	tx, err := connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	for _, set := range []string{`attempts = attempts + 1`, messageParked} {
		_, err := tx.Exec(t.Context(), `update caskeleton.inbox_message set `+set)
		require.NoError(t, err)
	}
	var updates, hot int
	require.NoError(t, tx.QueryRow(t.Context(), `select pg_stat_get_xact_tuples_updated(o), pg_stat_get_xact_tuples_hot_updated(o)
		from (select 'caskeleton.inbox_message'::regclass::oid as o) t`).Scan(&updates, &hot))
	require.Equal(t, 2, updates)
	require.Equal(t, updates, hot)
	require.NoError(t, tx.Rollback(t.Context()))
}

// TestPurgingInboxMessagesFindsTheOldest: the rows to delete come from the index, in its order, whatever else is in the table.
func TestPurgingInboxMessagesFindsTheOldest(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, Inbox())
	execSQL(t, dsn, `insert into caskeleton.inbox_message (consumer, message_id, state, attempts, received_at, completed_at)
		select 'shipping', n::text, case when n % 2 = 0 then 'COMPLETED' else 'RECEIVED' end, 1, now(), case when n % 2 = 0 then now() - n * interval '1 second' end
		from generate_series(1, 10000) n`)
	execSQL(t, dsn, `analyze caskeleton.inbox_message`)
	rows, err := connect(t, dsn).Query(t.Context(), `explain (costs off) select consumer, message_id from caskeleton.inbox_message
		where completed_at < now() - interval '1 hour' order by completed_at limit 100 for update skip locked`)
	require.NoError(t, err)
	defer rows.Close()
	plan := ""
	for rows.Next() {
		var line string
		require.NoError(t, rows.Scan(&line))
		plan += line + "\n"
	}
	require.NoError(t, rows.Err())
	require.Contains(t, plan, "Index Scan using inbox_message_completed_at")
	require.NotContains(t, plan, "Sort")
}
