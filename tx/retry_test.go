package tx_test

import (
	"context"
	"fmt"
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
	} {
		require.ErrorContains(t, r.With(tx.Options{Retry: p}).InWrite(t.Context(), ok), field)
	}
	require.Empty(t, d.calls)
}
