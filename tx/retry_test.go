package tx_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// failing returns a fn that fails with err the first n times, and counts its runs.
func failing(n int, err error, runs *int) func(context.Context, *tx.Tx) error {
	return func(context.Context, *tx.Tx) error {
		if *runs++; *runs <= n {
			return fmt.Errorf("placing the order: %w", err)
		}
		return nil
	}
}

func TestWhatIsRunAgain(t *testing.T) {
	three := tx.Options{Retry: tx.Retry{Attempts: 3}}
	for name, c := range map[string]struct {
		o    tx.Options
		err  error
		n    int // failures
		runs int
		want error
	}{
		"serialization failure":         {three, fault.DBSerializationFailure, 2, 3, nil},
		"deadlock":                      {three, fault.DBDeadlock, 2, 3, nil},
		"until the attempts are used":   {three, fault.DBDeadlock, 3, 3, fault.DBDeadlock},
		"off by default":                {tx.Options{}, fault.DBDeadlock, 1, 1, fault.DBDeadlock},
		"one attempt is none more":      {tx.Options{Retry: tx.Retry{Attempts: 1}}, fault.DBDeadlock, 1, 1, fault.DBDeadlock},
		"not a lock timeout":            {three, fault.DBLockTimeout, 1, 1, fault.DBLockTimeout},
		"not an outage":                 {three, fault.DBUnavailable, 1, 1, fault.DBUnavailable},
		"not an unknown commit":         {three, fault.DBCommitUnknown, 1, 1, fault.DBCommitUnknown},
		"not an unknown one with cause": {three, fault.New(fault.DBCommitUnknown, "x", fault.DBDeadlock), 1, 1, fault.DBCommitUnknown},
		"not anything else":             {three, errBoom, 1, 1, errBoom},
	} {
		for end, verb := range map[string]pick{"fn": inWrite, "read-only fn": inReadOnly, "COMMIT": nil} {
			t.Run(name+", from "+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, d := newRunner(t)
					r = r.With(c.o)
					runs := 0
					var err error
					if verb != nil {
						err = verb(r)(t.Context(), failing(c.n, c.err, &runs))
					} else {
						err = r.InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
							delete(d.fail, "commit")
							if runs++; runs <= c.n {
								d.fail["commit"] = c.err
							}
							return w.AfterCommit(note(&d.calls, fmt.Sprint("hook of run ", runs)))
						})
					}
					require.ErrorIs(t, err, c.want)
					require.Equal(t, c.runs, runs)
					for n := range runs {
						hook := fmt.Sprint("hook of run ", n+1)
						if verb == nil && err == nil && n == runs-1 {
							require.Contains(t, d.calls, hook)
						} else {
							require.NotContains(t, d.calls, hook, "hooks are of one attempt")
						}
					}
				})
			})
		}
	}
}

func TestOnlyWhatBeganTheTransactionRunsItAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newRunner(t)
		r = r.With(tx.Options{Retry: tx.Retry{Attempts: 2}})
		outer, joined := 0, 0
		require.NoError(t, r.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
			outer++
			return r.InWrite(ctx, failing(1, fault.DBDeadlock, &joined))
		}))
		require.Equal(t, []int{2, 2}, []int{outer, joined})
		require.Equal(t, []string{"begin", "rollback", "begin", "commit"}, d.calls)

		joined = 0
		require.ErrorIs(t, r.With(tx.Options{}).InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
			return r.InWrite(ctx, failing(1, fault.DBDeadlock, &joined))
		}), fault.DBDeadlock)
		require.Equal(t, 1, joined)

		swallowed := 0
		require.ErrorIs(t, r.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
			_ = r.InWrite(ctx, failing(9, fault.DBDeadlock, &swallowed))
			return nil
		}), tx.ErrRollbackOnly)
		require.Equal(t, 1, swallowed, "it would be swallowed again")
	})
}

func TestAPanicIsNotRunAgain(t *testing.T) {
	r, d := newRunner(t)
	require.Panics(t, func() {
		_ = r.With(tx.Options{Retry: tx.Retry{Attempts: 3}}).InWrite(t.Context(), func(context.Context, *tx.Tx) error { panic(fault.DBDeadlock) })
	})
	require.Equal(t, []string{"begin", "rollback"}, d.calls)
}

// Waits are random up to a bound that doubles: none is longer, and over many runs some are much shorter and some nearly as long.
func TestWaitsHaveFullJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newRunner(t)
		r = r.With(tx.Options{Retry: tx.Retry{Attempts: 5, Budget: time.Hour, MinWait: 100 * time.Millisecond, MaxWait: 300 * time.Millisecond}})
		bounds := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 300 * time.Millisecond}
		least, most := make([]time.Duration, 4), make([]time.Duration, 4)
		for i := range least {
			least[i] = time.Hour
		}
		for range 200 {
			var last time.Time
			n := 0
			require.ErrorIs(t, r.InWrite(t.Context(), func(context.Context, *tx.Tx) error {
				if n > 0 {
					wait := time.Since(last)
					require.LessOrEqual(t, wait, bounds[n-1])
					least[n-1], most[n-1] = min(least[n-1], wait), max(most[n-1], wait)
				}
				n, last = n+1, time.Now()
				return fault.DBDeadlock
			}), fault.DBDeadlock)
		}
		for i, bound := range bounds { // 200 draws miss a fifth of the range once in 10^19 runs
			require.Less(t, least[i], bound/5)
			require.Greater(t, most[i], bound*4/5)
		}
	})
}

// longestWaits runs a fn that always fails, over and over, and returns the longest wait seen before the second, third, ... attempt.
func longestWaits(t *testing.T, p tx.Retry) []time.Duration {
	t.Helper()
	r, _ := newRunner(t)
	longest := make([]time.Duration, p.Attempts-1)
	for range 400 {
		var last time.Time
		n := 0
		require.ErrorIs(t, r.With(tx.Options{Retry: p}).InWrite(t.Context(), func(context.Context, *tx.Tx) error {
			if n > 0 {
				longest[n-1] = max(longest[n-1], time.Since(last))
			}
			n, last = n+1, time.Now()
			return fault.DBDeadlock
		}), fault.DBDeadlock)
	}
	return longest
}

// Of 400 draws one is in the last tenth of the range, but for once in 10^18 runs.
func TestWaitsByDefault(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		p    tx.Retry
		want []time.Duration
	}{
		"nothing set":     {tx.Retry{Attempts: 10}, []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, 1000 * ms, 1000 * ms}},
		"a low MaxWait":   {tx.Retry{Attempts: 3, MaxWait: 2 * ms}, []time.Duration{2 * ms, 2 * ms}},
		"a high MinWait":  {tx.Retry{Attempts: 3, MinWait: 3000 * ms}, []time.Duration{3000 * ms, 3000 * ms}},
		"MinWait for all": {tx.Retry{Attempts: 3, MinWait: 100 * ms, MaxWait: 100 * ms}, []time.Duration{100 * ms, 100 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.p.Budget = time.Hour
				for i, longest := range longestWaits(t, c.p) {
					require.LessOrEqual(t, longest, c.want[i], "wait %d", i+1)
					require.Greater(t, longest, c.want[i]*9/10, "wait %d", i+1)
				}
			})
		})
	}
}

// No attempt begins after the budget, however long a wait is drawn, and none that fits is left out.
func TestTheBudgetCountsTheWait(t *testing.T) {
	for budget, p := range map[time.Duration]tx.Retry{
		5 * time.Second: {Attempts: 1_000_000},
		time.Second:     {Attempts: 1_000_000, Budget: time.Second, MinWait: time.Second, MaxWait: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, _ := newRunner(t)
			latest := time.Duration(0)
			for range 200 {
				start := time.Now()
				require.ErrorIs(t, r.With(tx.Options{Retry: p}).InWrite(t.Context(), func(context.Context, *tx.Tx) error {
					latest = max(latest, time.Since(start))
					return fault.DBDeadlock
				}), fault.DBDeadlock)
			}
			require.LessOrEqual(t, latest, budget)
			require.Greater(t, latest, budget*9/10)
		})
	}
}

func TestRunningAgainHasABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newRunner(t)
		r = r.With(tx.Options{Retry: tx.Retry{Attempts: 1_000_000, Budget: 10 * time.Second}})
		start, last, runs := time.Now(), time.Duration(0), 0
		require.ErrorIs(t, r.InWrite(t.Context(), func(context.Context, *tx.Tx) error {
			last = time.Since(start)
			runs++
			<-time.After(time.Second) // of the bubble's clock
			return fault.DBSerializationFailure
		}), fault.DBSerializationFailure)
		require.LessOrEqual(t, last, 10*time.Second)
		require.Greater(t, runs, 4)

		ctx, cancel := context.WithCancel(t.Context())
		runs = 0
		require.ErrorIs(t, r.InWrite(ctx, func(context.Context, *tx.Tx) error {
			runs++
			cancel()
			return fault.DBDeadlock
		}), fault.DBDeadlock, "what it failed with, not that nobody waits any more")
		require.Equal(t, 1, runs)
	})
}

func TestRetryThatCannotWorkIsRefused(t *testing.T) {
	r, d := newRunner(t)
	for field, p := range map[string]tx.Retry{
		"Attempts": {Attempts: -1}, "Budget": {Budget: -1}, "MinWait": {MinWait: -1}, "MaxWait": {MaxWait: -1}, "more than": {MinWait: 2, MaxWait: 1},
		"use at most 1h0m0s": {Attempts: 2, MinWait: math.MaxInt64}, "is 1h0m0.1s": {Attempts: 2, MaxWait: time.Hour + 100*time.Millisecond}, "is 2h0m0s": {Attempts: 2, Budget: 2 * time.Hour},
	} {
		require.ErrorContains(t, r.With(tx.Options{Retry: p}).InWrite(t.Context(), ok), field)
	}
	require.Empty(t, d.calls)
}
