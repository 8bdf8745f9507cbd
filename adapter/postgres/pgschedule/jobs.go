package pgschedule

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/lock/schedule"
)

// Jobs implements [schedule.Driver]. Safe for concurrent use.
type Jobs struct{ db *postgres.DB }

var _ schedule.Driver = (*Jobs)(nil)

// New returns the runs kept in db.
func New(db *postgres.DB) *Jobs { return &Jobs{db} }

// Now implements [schedule.Driver].
func (s *Jobs) Now(ctx context.Context) (now time.Time, err error) {
	err = s.db.QueryRow(ctx, `select clock_timestamp()`).Scan(&now)
	return now, err
}

// beginSQL answers with no row where the same slot was committed while it waited: the next statement sees whose it is.
const beginSQL = `
with mine as (
  insert into caskeleton.job_run (job, slot, instance, started_at, deadline)
  select $1::text, $2::timestamptz, $3::text, c.now, c.now + $4::bigint * interval '1 microsecond'
  from (select clock_timestamp() as now offset 0) c
  on conflict (job, slot) do nothing
  returning true as mine
)
select mine from mine
union all
select instance = $3::text and finished_at is null from caskeleton.job_run
where job = $1::text and slot = $2::timestamptz and not exists (select from mine)`

// Begin implements [schedule.Driver].
func (s *Jobs) Begin(ctx context.Context, c schedule.Claim, atMost time.Duration) (mine bool, err error) {
	for {
		err = s.db.QueryRow(ctx, beginSQL, c.Job, c.Slot.UTC(), c.Instance, postgres.Micros(atMost)).Scan(&mine)
		if !errors.Is(err, pgx.ErrNoRows) {
			return mine, err
		}
	}
}

const finishSQL = `
update caskeleton.job_run set finished_at = clock_timestamp(), outcome = $4, reason = $5
where job = $1 and slot = $2 and instance = $3 and finished_at is null`

// Finish implements [schedule.Driver].
func (s *Jobs) Finish(ctx context.Context, c schedule.Claim, o schedule.Outcome, reason string) error {
	_, err := s.db.Exec(ctx, finishSQL, c.Job, c.Slot.UTC(), c.Instance, string(o), reason)
	return err
}

const historySQL = `
select slot, instance, started_at, coalesce(finished_at, 'epoch'), finished_at is not null,
  coalesce(outcome, case when deadline <= clock_timestamp() then 'abandoned' else 'running' end), reason
from caskeleton.job_run where job = $1 order by slot desc limit $2::bigint`

// History implements [schedule.Driver].
func (s *Jobs) History(ctx context.Context, job string, limit int) ([]schedule.Run, error) {
	rows, err := s.db.Query(ctx, historySQL, job, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var runs []schedule.Run
	for rows.Next() {
		r := schedule.Run{Claim: schedule.Claim{Job: job}}
		var finishedAt time.Time
		var finished bool
		if err := rows.Scan(&r.Slot, &r.Instance, &r.StartedAt, &finishedAt, &finished, &r.Outcome, &r.Reason); err != nil {
			return nil, err
		}
		if finished {
			r.FinishedAt = finishedAt
		}
		runs = append(runs, r)
	}
	return runs, rows.Err()
}

// pruneSQL goes from job to job, and in each from the oldest slot on, along the primary key. The clock is read once, or no index would do. Nobody
// updates rows this old, so that each is still where it was found.
const pruneSQL = `
with recursive name as (
  (select job from caskeleton.job_run order by job limit 1)
  union all
  select (select r.job from caskeleton.job_run r where r.job > n.job order by r.job limit 1) from name n where n.job is not null
), gone as (
  delete from caskeleton.job_run where ctid = any (array(
    select o.ctid from name n cross join lateral (
      select r.ctid from caskeleton.job_run r
      where r.job = n.job and r.slot < (select clock_timestamp() - $1::bigint * interval '1 microsecond')
        and r.slot <= (select k.slot from caskeleton.job_run k where k.job = n.job order by k.slot desc offset $2::bigint limit 1)
      order by r.slot limit $3::bigint
    ) o
    limit $3::bigint
  )) returning 1
)
select count(*) from gone`

// Prune implements [schedule.Driver].
func (s *Jobs) Prune(ctx context.Context, age time.Duration, keep, limit int) (n int, err error) {
	err = s.db.QueryRow(ctx, pruneSQL, postgres.Micros(age), keep, limit).Scan(&n)
	return n, err
}
