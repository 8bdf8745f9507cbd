package pgoutbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/outbox"
)

// Driver implements [outbox.Driver]. Safe for concurrent use.
type Driver struct{ db *postgres.DB }

var _ outbox.Driver = (*Driver)(nil)

// New returns the outbox kept in db.
func New(db *postgres.DB) *Driver { return &Driver{db} }

// controlKeys name the advisory lock that guards the control row: "cask" and "outb" in ASCII. A shared row lock there would cost a
// multixact a claim.
const controlKeys = "1667330923, 1869968482"

// lockSQL goes before a statement that reads the control row, in the same round trip: whoever changes the row holds the lock
// exclusively, and the statement's snapshot is newer than the lock.
const lockSQL = `select pg_advisory_xact_lock_shared(` + controlKeys + `)`

// pinSQL goes before the relay's statements: it takes the same lock, and leaves the planner no way but look-ups by key and by due time.
// By itself it would read a table that looks small, and sort, or keep a plan from when it was small, beside a million lanes. A plan of
// one's own for each run knows the size that the tables have now; making it takes less than half a millisecond.
const pinSQL = lockSQL + `, set_config('plan_cache_mode', 'force_custom_plan', true),
  set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
  set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)`

// relay runs one of the relay's statements, in one round trip and a transaction of its own, and reads each row with scan.
func (d *Driver) relay(ctx context.Context, sql string, args []any, scan func(pgx.Row) error) error {
	b := &pgx.Batch{}
	b.Queue(pinSQL)
	b.Queue(sql, args...)
	results := d.db.SendBatch(ctx, b)
	defer func() { _ = results.Close() }()
	if _, err := results.Exec(); err != nil {
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return results.Close() // which says whether it has committed
}

// nextDueSQL reads the first entry of the index on due.
const nextDueSQL = `
select due, (extract(epoch from due - clock_timestamp()) * 1000000)::bigint
from caskeleton.outbox_lane where due is not null order by due limit 1`

// NextDue implements [outbox.Driver].
func (d *Driver) NextDue(ctx context.Context) (in time.Duration, at time.Time, ok bool, err error) {
	var us int64
	err = d.relay(ctx, nextDueSQL, nil, func(row pgx.Row) error {
		ok = true
		return row.Scan(&at, &us)
	})
	if err != nil {
		return 0, time.Time{}, false, err
	}
	return time.Duration(us) * time.Microsecond, at, ok, nil
}
