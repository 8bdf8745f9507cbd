package pgoutbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
)

const (
	maxPartitions = 16 // live ones: the cost of planning grows with them
	lockTimeout   = "3s"
)

// premakeKeys name the advisory lock under which partitions are made: "cask" and "part" in ASCII.
const premakeKeys = "1667330923, 1885434484"

// Premake makes the weekly partitions of caskeleton.outbox_event from the present week on, so that so many exist from it on, and returns
// how many it made. The one of the next week is always made; others only while fewer than 16 exist. It needs the owner's role on a
// connection of its own, which dsn leads to; callers at the same moment take turns, and appends and relays are not held up. A lock that
// is not free within seconds is DB_LOCK_TIMEOUT: try again.
func Premake(ctx context.Context, dsn string, weeks int) (made int, err error) {
	const op = "pgoutbox.Premake"
	errs, err := postgres.NewClassifier()
	if err != nil {
		return 0, err
	}
	if weeks < 1 || weeks > maxPartitions {
		return 0, fmt.Errorf("pgoutbox: weeks is %d; use 1 to %d, 4 for a month", weeks, maxPartitions)
	}
	conn, err := connectOwner(ctx, op, dsn, "caskeleton-premake", lockTimeout, errs)
	if err != nil {
		return 0, err
	}
	defer closeOwner(ctx, conn)
	err = pgx.BeginFunc(ctx, conn, func(t pgx.Tx) error {
		if _, err := t.Exec(ctx, `select pg_advisory_xact_lock(`+premakeKeys+`)`); err != nil {
			return err
		}
		missing, err := missingWeeks(ctx, t, weeks)
		if err != nil {
			return err
		}
		for _, monday := range missing {
			if err := makePartition(ctx, t, monday); err != nil {
				return err
			}
		}
		made = len(missing)
		return nil
	})
	if err != nil {
		return 0, errs.Translate(ctx, op, err)
	}
	return made, nil
}

// partitionsSQL reads the weeks that the partitions take. One that is being detached takes nothing any more.
const partitionsSQL = `
select substring(pg_get_expr(c.relpartbound, c.oid) from $$FROM \('([^']+)'\)$$)::timestamptz as lower,
  substring(pg_get_expr(c.relpartbound, c.oid) from $$TO \('([^']+)'\)$$)::timestamptz as upper
from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
where i.inhparent = 'caskeleton.outbox_event'::regclass and not i.inhdetachpending`

// missingSQL returns the Mondays, 0 o'clock UTC, of the $1 weeks from the present one on that no partition takes, and the number of
// partitions that there are.
const missingSQL = `
with p as materialized (` + partitionsSQL + `)
select (w.monday at time zone 'UTC')::timestamptz, w.n, (select count(*) from p)
from (
  select n, date_trunc('week', clock_timestamp() at time zone 'UTC') + n * interval '7 days' as monday from generate_series(0, $1::int - 1) n
) w
where not exists (select from p where p.lower <= w.monday at time zone 'UTC' and p.upper > w.monday at time zone 'UTC')
order by w.n`

func missingWeeks(ctx context.Context, t pgx.Tx, weeks int) ([]time.Time, error) {
	rows, err := t.Query(ctx, missingSQL, weeks)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var missing []time.Time
	for rows.Next() {
		var monday time.Time
		var n, live int
		if err := rows.Scan(&monday, &n, &live); err != nil {
			return nil, err
		}
		if n <= 1 || live+len(missing) < maxPartitions {
			missing = append(missing, monday.UTC())
		}
	}
	return missing, rows.Err()
}

// makePartition makes a table and attaches it: CREATE TABLE ... PARTITION OF would lock appends out. What has the name already and is no
// partition is somebody's to look at, and an error.
func makePartition(ctx context.Context, t pgx.Tx, monday time.Time) error {
	const bound = "2006-01-02 15:04:05+00"
	name := pgx.Identifier{"caskeleton", "outbox_event_" + monday.Format("20060102")}.Sanitize()
	_, err := t.Exec(ctx, fmt.Sprintf(`create table %s (like caskeleton.outbox_event including all);
		alter table caskeleton.outbox_event attach partition %s for values from ('%s') to ('%s')`,
		name, name, monday.Format(bound), monday.AddDate(0, 0, 7).Format(bound)))
	return err
}

const partitionsLeftSQL = `
with p as materialized (` + partitionsSQL + `)
select count(*) from generate_series(0, 51) w
where not exists (
  select from generate_series(0, w) n
  where not exists (select from p where p.lower <= clock_timestamp() + n * interval '7 days' and p.upper > clock_timestamp() + n * interval '7 days')
)`

// PartitionsLeft returns for how many weeks there is a partition, without a gap, the present week included: at 1 the next week's is
// missing, and at 0 no event can be recorded.
func (d *Driver) PartitionsLeft(ctx context.Context) (int, error) {
	var n int
	err := d.db.QueryRow(ctx, partitionsLeftSQL).Scan(&n)
	return n, err
}
