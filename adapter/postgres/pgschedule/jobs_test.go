package pgschedule_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgschedule"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/lock/schedule"
	"caskeleton.dev/lock/schedule/scheduletest"
)

func TestConformance(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			scheduletest.TestDriver(t, scheduletest.DriverHarness{New: func(t *testing.T) schedule.Driver {
				t.Helper()
				return pgschedule.New(open(t, newDSN(t), mode))
			}})
		})
	}
}

// TestConformanceAsTheRuntimeRole: the grants of `migrate grants` are enough for all that jobs do.
func TestConformanceAsTheRuntimeRole(t *testing.T) {
	t.Parallel()
	scheduletest.TestDriver(t, scheduletest.DriverHarness{New: func(t *testing.T) schedule.Driver {
		t.Helper()
		return pgschedule.New(open(t, migrationstest.RuntimeDSN(t, newDSN(t), migrations.Lock()), "exec"))
	}})
}

// TestWhoComesLaterWritesNothing: all instances but one come later, at each slot.
func TestWhoComesLaterWritesNothing(t *testing.T) {
	db := open(t, newDSN(t), "")
	jobs := pgschedule.New(db)
	c := schedule.Claim{Job: "job", Slot: time.Unix(60, 0), Instance: "a"}
	mine, err := jobs.Begin(t.Context(), c, time.Minute)
	require.NoError(t, err)
	require.True(t, mine)
	row := func() (version string) {
		require.NoError(t, db.QueryRow(t.Context(), `select xmin::text || ' ' || xmax::text || ' ' || ctid::text from caskeleton.job_run`).Scan(&version))
		return version
	}
	before := row()
	for _, instance := range []string{"a", "b"} {
		c.Instance = instance
		mine, err = jobs.Begin(t.Context(), c, time.Minute)
		require.NoError(t, err)
		require.Equal(t, instance == "a", mine)
		require.Equal(t, before, row())
	}
}

// TestARepeatMeetsItsOwnLostAnswer: the statement before was given up, and is committed while this one waits for it.
func TestARepeatMeetsItsOwnLostAnswer(t *testing.T) {
	dsn := newDSN(t)
	db := open(t, dsn, "")
	before := pgtest.Connect(t, dsn)
	for instance, want := range map[string]bool{"a": true, "b": false} {
		_, err := before.Exec(t.Context(), `begin; delete from caskeleton.job_run;
			insert into caskeleton.job_run (job, slot, instance, started_at, deadline) values ('job', to_timestamp(60), 'a', now(), now() + interval '1 hour')`)
		require.NoError(t, err)
		got := make(chan bool, 1)
		go func() {
			mine, err := pgschedule.New(db).Begin(t.Context(), schedule.Claim{Job: "job", Slot: time.Unix(60, 0), Instance: instance}, time.Minute)
			if err != nil {
				t.Error(err)
			}
			got <- mine
		}()
		require.Eventually(t, func() bool {
			var queued bool
			err := db.QueryRow(t.Context(), `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`).Scan(&queued)
			return err == nil && queued
		}, 30*time.Second, time.Millisecond)
		_, err = before.Exec(t.Context(), `commit`)
		require.NoError(t, err)
		require.Equal(t, want, <-got, instance)
	}
}

// TestPruningAndHistoryGoAlongTheKey reads the plans beside many runs.
func TestPruningAndHistoryGoAlongTheKey(t *testing.T) {
	dsn := newDSN(t)
	conn := pgtest.Connect(t, dsn)
	_, err := conn.Exec(t.Context(), `insert into caskeleton.job_run (job, slot, instance, started_at, deadline, finished_at, outcome)
		select 'job' || j, now() - n * interval '1 minute', 'a', now(), now(), now(), 'succeeded' from generate_series(1, 20) j, generate_series(1, 5000) n`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `analyze caskeleton.job_run`)
	require.NoError(t, err)
	for name, q := range map[string]struct {
		sql  string
		args []any
	}{
		"prune":   {pgschedule.PruneSQL, []any{time.Hour.Microseconds(), 100, 1000}},
		"history": {pgschedule.HistorySQL, []any{"job7", 50}},
	} {
		t.Run(name, func(t *testing.T) {
			sql := q.sql
			for i, a := range q.args {
				literal := fmt.Sprint(a)
				if s, ok := a.(string); ok {
					literal = "'" + s + "'"
				}
				sql = strings.ReplaceAll(sql, fmt.Sprint("$", i+1), literal)
			}
			rows, err := conn.Query(t.Context(), `explain (costs off) `+sql)
			require.NoError(t, err)
			defer rows.Close()
			plan := ""
			for rows.Next() {
				var line string
				require.NoError(t, rows.Scan(&line))
				plan += line + "\n"
			}
			require.NoError(t, rows.Err())
			require.Contains(t, plan, "job_run_pkey")
			require.NotContains(t, plan, "Seq Scan on job_run", plan)
		})
	}
	db := open(t, dsn, "")
	n, err := pgschedule.New(db).Prune(t.Context(), 24*time.Hour, 100, 1000)
	require.NoError(t, err)
	require.Equal(t, 1000, n)
}
