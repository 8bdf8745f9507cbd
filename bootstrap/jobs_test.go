package bootstrap

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/adapter/postgres/pgschedule"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
)

// instances starts two instances of a service with one job, on one database, and returns them as they were wired.
func instances(t *testing.T, ran *atomic.Int64, environ ...string) (apps [2]*App) {
	t.Helper()
	environ = append(environ, "DATABASE_URL="+pgtest.DSN(t), secretOf("V1", "k"))
	for i := range apps {
		service := Service{Name: "test", Routes: routes(nil), Jobs: func(a *App) []schedule.Job {
			apps[i] = a
			return []schedule.Job{{Name: "test.count", When: schedule.Every(20 * time.Millisecond), AtMost: time.Minute, Run: func(context.Context) error {
				ran.Add(1)
				return nil
			}}}
		}}
		r, listening := begin(t, configOf(t, environ...), service)
		wait(t, listening)
		t.Cleanup(func() { require.NoError(t, r.stop(t)) })
	}
	return apps
}

// succeeds waits until the latest run of a job has.
func succeeds(t *testing.T, a *App, job string) {
	t.Helper()
	require.Eventually(t, func() bool {
		runs, err := pgschedule.New(a.DB).History(t.Context(), job, 1)
		return err == nil && len(runs) > 0 && runs[0].Outcome == schedule.Succeeded
	}, patience, 5*time.Millisecond)
}

func TestJobsOfSeveralInstances(t *testing.T) {
	t.Run("one by one", func(t *testing.T) { // each for itself, as far as locks go; slots are taken in the database all the same
		var ran atomic.Int64
		apps := instances(t, &ran)
		require.Eventually(t, func() bool { return ran.Load() >= 20 }, patience, 5*time.Millisecond)
		succeeds(t, apps[0], "test.count")
		succeeds(t, apps[0], "tx.witnesses")
		require.False(t, excludes(t, apps))
	})
	t.Run("postgres", func(t *testing.T) {
		succeeds(t, several(t, "APP_MULTI_INSTANCE_ENABLED=true")[0], "lock.reap")
	})
}

// several runs two instances that share their locks, and the kit's jobs on them.
func several(t *testing.T, environ ...string) [2]*App {
	t.Helper()
	var ran atomic.Int64
	apps := instances(t, &ran, environ...)
	require.Eventually(t, func() bool { return ran.Load() >= 20 }, patience, 5*time.Millisecond)
	succeeds(t, apps[0], "test.count")
	succeeds(t, apps[0], "schedule.prune")
	require.True(t, excludes(t, apps))
	return apps
}

// excludes reports whether one instance keeps the other from a lock.
func excludes(t *testing.T, apps [2]*App) bool {
	t.Helper()
	lease, err := apps[0].Locker.Acquire(t.Context(), "key", nil)
	require.NoError(t, err)
	other, err := apps[1].Locker.Acquire(t.Context(), "key", &lock.AcquireOptions{})
	if err == nil {
		require.NoError(t, other.Release(t.Context()))
	} else {
		require.ErrorIs(t, err, fault.LockAcquisitionTimeout)
	}
	require.NoError(t, lease.Release(t.Context()))
	return err != nil
}

func TestARedisThatIsDownIsWaitedForAndNamedNowhere(t *testing.T) {
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	c := configOf(t, "APP_MULTI_INSTANCE_ENABLED=true", "REDIS_URL=redis://canary:canary@"+freeAddr(t))
	_, err := openRedis(ctx, c.Redis.URL, slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
		cancel() // it has said that it waits
		return log.Write(b)
	}), nil)))
	require.ErrorIs(t, err, context.Canceled)
	require.Contains(t, log.String(), "Redis is not reachable yet")
	require.NotContains(t, log.String(), "canary")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func TestPartitionsAreLookedAfter(t *testing.T) {
	dsn := migrationstest.DSN(t, migrations.OutboxStorage(), migrations.OutboxPolling())
	var log bytes.Buffer
	db, err := postgres.Open(t.Context(), postgres.Config{DSN: dsn}, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close(context.WithoutCancel(t.Context()))) }()
	logger := slog.New(slog.NewTextHandler(&log, nil))
	watching, making := partitioning(db, "", logger), partitioning(db, dsn, logger)
	require.NoError(t, watching.Run(t.Context()), "there are enough")

	conn := pgtest.Connect(t, dsn)
	_, err = conn.Exec(t.Context(), `do $$ declare p text; begin
		for p in select inhrelid::regclass::text from pg_inherits where inhparent = 'caskeleton.outbox_event'::regclass loop execute 'drop table ' || p; end loop; end $$`)
	require.NoError(t, err)
	require.ErrorContains(t, watching.Run(t.Context()), "0 weeks are left")
	require.Contains(t, log.String(), "outbox partitions run out")
	require.NoError(t, making.Run(t.Context()))
	left, err := pgoutbox.New(db).PartitionsLeft(t.Context())
	require.NoError(t, err)
	require.Equal(t, weeksAhead, left)
	require.NoError(t, watching.Run(t.Context()))
}
