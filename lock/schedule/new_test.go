package schedule_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
)

func nothing(context.Context) error { return nil }

func newLocker(t *testing.T, d lock.Driver) *lock.Locker {
	t.Helper()
	l, err := lock.New(d, nil)
	require.NoError(t, err)
	return l
}

func TestNewTellsAllThatIsWrong(t *testing.T) {
	locker := newLocker(t, memory.NewLocks(nil))
	good := schedule.Job{Name: "a.b-c_d9", When: schedule.Every(time.Hour), AtMost: time.Minute, AtLeast: time.Minute, Run: nothing}
	_, err := schedule.New(memory.NewJobs(), locker, []schedule.Job{
		good, good,
		{Name: "Ärger"},
		{Name: "times", When: schedule.Cron("x"), AtMost: -1, AtLeast: time.Second, Run: nothing},
		{Name: "least", When: schedule.Every(time.Nanosecond), AtMost: time.Second, AtLeast: 2 * time.Second, Run: nothing},
		{Name: "schedule.prune", When: schedule.Every(time.Hour), AtMost: time.Minute, Run: nothing},
	}, nil)
	for _, want := range []string{
		`there are two jobs "a.b-c_d9"; rename one`,
		`job "Ärger": Name must have`, `job "Ärger": When is nil`, `job "Ärger": AtMost is 0s`, `job "Ärger": Run is nil`,
		`job "times": When: Cron("x"): has 1 fields`, `job "times": AtMost is -1ns`, `job "times": AtLeast is 1s`,
		`job "least": When: Every(1ns)`, `job "least": AtLeast is 2s; use 0 to AtMost, 1s`,
		`there are two jobs "schedule.prune"; rename one`,
	} {
		require.ErrorContains(t, err, want)
	}

	s, err := schedule.New(memory.NewJobs(), locker, []schedule.Job{good}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a.b-c_d9", "schedule.prune"}, s.Jobs())
	for _, limit := range []int{0, -1, 1001} {
		_, err = s.History(t.Context(), "a.b-c_d9", limit)
		require.ErrorContains(t, err, "use 1 to 1000")
	}

	_, err = schedule.New(nil, locker, nil, nil)
	require.ErrorContains(t, err, "a driver and a locker are required")
	_, err = schedule.New(memory.NewJobs(), nil, nil, nil)
	require.ErrorContains(t, err, "a driver and a locker are required")
	for want, o := range map[string]schedule.Options{
		"CatchUp is -1s":         {CatchUp: -time.Second},
		"Retention is -1s":       {Retention: -time.Second},
		"DrainTimeout is -1s":    {DrainTimeout: -time.Second},
		"no longer than CatchUp": {CatchUp: time.Hour, Retention: time.Hour},
		"Instance has 101":       {Instance: string(make([]byte, 101))},
	} {
		_, err = schedule.New(memory.NewJobs(), locker, nil, &o)
		require.ErrorContains(t, err, want)
	}
}
