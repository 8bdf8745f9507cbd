package migrations

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func TestOutboxConstraints(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, OutboxStorage(), OutboxPolling())
	conn := connect(t, dsn)
	const lane = `insert into caskeleton.outbox_lane (aggregatetype, aggregateid, next_sequence, next_recorded_at) values ('a', 'b', 1, now())`
	_, err := conn.Exec(t.Context(), lane)
	require.NoError(t, err)
	for sql, state := range map[string]string{
		lane: "23505",
		`insert into caskeleton.outbox_control default values`:                               "23505",
		`insert into caskeleton.outbox_control (singleton) values (false)`:                   "23514",
		`update caskeleton.outbox_control set mode = 'off'`:                                  "23514",
		`update caskeleton.outbox_lane set hold = 'other'`:                                   "23514",
		`update caskeleton.outbox_lane set owner = 'x'`:                                      "23514",
		`update caskeleton.outbox_lane set token = gen_random_uuid()`:                        "23514",
		`update caskeleton.outbox_lane set attempt = -1`:                                     "23514",
		`insert into caskeleton.outbox_identity select gen_random_uuid()`:                    "23502",
		`insert into caskeleton.outbox_counter (aggregatetype, aggregateid) values ('', '')`: "23502",
	} {
		_, err := conn.Exec(t.Context(), sql)
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr, sql)
		require.Equal(t, state, pgErr.Code, sql)
	}
	for _, set := range []string{`owner = 'x', token = gen_random_uuid()`, `owner = null, token = null, hold = 'dead'`, `hold = 'type'`, `hold = 'operator'`, `hold = null`} {
		_, err := conn.Exec(t.Context(), `update caskeleton.outbox_lane set `+set)
		require.NoError(t, err, set)
	}
}

// TestOutboxHasPartitionsForAMonth, from this week's Monday in UTC on, without a gap and without a default one.
func TestOutboxHasPartitionsForAMonth(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	execSQL(t, dsn, `do $$ begin execute format('alter database %I set timezone to ''Asia/Seoul''', current_database()); end $$`)
	up(t, dsn, OutboxStorage())
	conn := connect(t, dsn)
	_, err := conn.Exec(t.Context(), `set timezone to 'UTC'`)
	require.NoError(t, err)
	rows, err := conn.Query(t.Context(), `select c.relname, pg_get_expr(c.relpartbound, c.oid) from pg_inherits i join pg_class c on c.oid = i.inhrelid
		where i.inhparent = 'caskeleton.outbox_event'::regclass order by 1`)
	require.NoError(t, err)
	var name, bound string
	var n int
	now := time.Now().UTC()
	monday := now.AddDate(0, 0, -(int(now.Weekday())+6)%7).Truncate(24 * time.Hour)
	for rows.Next() {
		require.NoError(t, rows.Scan(&name, &bound))
		from := monday.AddDate(0, 0, 7*n)
		require.Equal(t, "outbox_event_"+from.Format("20060102"), name)
		require.Equal(t, "FOR VALUES FROM ('"+from.Format("2006-01-02")+" 00:00:00+00') TO ('"+from.AddDate(0, 0, 7).Format("2006-01-02")+" 00:00:00+00')", bound)
		n++
	}
	require.NoError(t, rows.Err())
	require.Equal(t, 4, n)
}

// TestOutboxUpdatesAreHOT: those that an append repeats on the counter. The lane's move its due index, as they must.
func TestOutboxUpdatesAreHOT(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	up(t, dsn, OutboxStorage())
	tx, err := connect(t, dsn).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `insert into caskeleton.outbox_counter values ('a', 'b', 1, 0, now())`)
	require.NoError(t, err)
	for range 3 {
		_, err := tx.Exec(t.Context(), `update caskeleton.outbox_counter set last_sequence = last_sequence + 1, drained_sequence = last_sequence, last_recorded_at = clock_timestamp()`)
		require.NoError(t, err)
	}
	var updates, hot int
	require.NoError(t, tx.QueryRow(t.Context(), `select pg_stat_get_xact_tuples_updated(o), pg_stat_get_xact_tuples_hot_updated(o)
		from (select 'caskeleton.outbox_counter'::regclass::oid as o) t`).Scan(&updates, &hot))
	require.Equal(t, 3, updates)
	require.Equal(t, updates, hot)
	require.NoError(t, tx.Rollback(t.Context()))
}
