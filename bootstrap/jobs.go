package bootstrap

import (
	"context"
	"log/slog"
	"time"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pglock"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/adapter/postgres/pgschedule"
	"caskeleton.dev/fault"
	"caskeleton.dev/lock/schedule"
)

// scheduler returns what runs the kit's jobs and the service's.
func scheduler(s Service, app *App) (*schedule.Scheduler, error) {
	jobs := app.upkeep
	if s.Reconciler != nil {
		j, err := reconciling(app, s.Reconciler(app))
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	if s.Jobs != nil {
		jobs = append(jobs, s.Jobs(app)...)
	}
	return schedule.New(pgschedule.New(app.DB), app.Locker, jobs, &schedule.Options{Logger: app.Log})
}

const (
	reapAge   = time.Hour // how long a lease has passed before its row is deleted
	reapBatch = 1000
)

// reaping deletes the rows of holders that crashed.
func reaping(locks *pglock.Locks) schedule.Job {
	return schedule.Job{Name: "lock.reap", When: schedule.Every(10 * time.Minute), AtMost: 5 * time.Minute, Run: func(ctx context.Context) error {
		for {
			n, err := locks.Reap(ctx, reapAge, reapBatch)
			if err != nil || n < reapBatch {
				return err
			}
		}
	}}
}

// forgetting deletes the witnesses of commits whose outcome nobody asks for any more.
func forgetting(db *postgres.DB) schedule.Job {
	return schedule.Job{Name: "tx.witnesses", When: schedule.Every(10 * time.Minute), AtMost: 5 * time.Minute, Run: func(ctx context.Context) error {
		_, err := db.ReapWitnesses(ctx)
		return err
	}}
}

// leastWeeks is for how many weeks, the present one included, there have to be partitions for a look at them to be content.
const leastWeeks = 2

// partitioning makes the outbox's partitions ahead where dsn, the owner's, is known; and where there are too few, by whomever they should have
// been made, it fails, which is logged as an error and seen in the history.
func partitioning(db *postgres.DB, dsn string, log *slog.Logger) schedule.Job {
	return schedule.Job{Name: "outbox.partitions", When: schedule.Every(6 * time.Hour), AtMost: 5 * time.Minute, Run: func(ctx context.Context) error {
		if dsn != "" {
			if err := premake(ctx, db, dsn, log); err != nil {
				return err
			}
		}
		left, err := pgoutbox.New(db).PartitionsLeft(ctx)
		if err == nil && left < leastWeeks {
			log.ErrorContext(ctx, "outbox partitions run out; no event can be recorded without", "weeks_left", left, "fix", "set APP_MIGRATION_DSN, or start once with the owner's role")
			err = fault.Textf("bootstrap: outbox partitions for %d weeks are left", left)
		}
		return err
	}}
}
