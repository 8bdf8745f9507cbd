package pgoutbox

import (
	"context"
	"errors"
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

// lockSQL goes before each statement that reads the control row, in the same round trip: whoever changes the row holds the lock
// exclusively, and the statement's snapshot is newer than the lock.
const lockSQL = `select pg_advisory_xact_lock_shared(` + controlKeys + `)`

// locked runs sql behind the control lock and reads each row with scan.
func (d *Driver) locked(ctx context.Context, sql string, args []any, scan func(pgx.Row) error) error {
	b := &pgx.Batch{}
	b.Queue(lockSQL)
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
	return results.Close() // the implicit transaction commits with the batch
}

// nextDueSQL reads the first entry of the index on due.
const nextDueSQL = `
select due, (extract(epoch from due - clock_timestamp()) * 1000000)::bigint
from caskeleton.outbox_lane where due is not null order by due limit 1`

// NextDue implements [outbox.Driver].
func (d *Driver) NextDue(ctx context.Context) (in time.Duration, at time.Time, ok bool, err error) {
	var us int64
	err = d.db.QueryRow(ctx, nextDueSQL).Scan(&at, &us)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, time.Time{}, false, nil
	}
	return time.Duration(us) * time.Microsecond, at, err == nil, err
}

// micros is a duration as the statements take it; they multiply it with interval '1 microsecond'.
func micros(d time.Duration) int64 { return d.Microseconds() }
