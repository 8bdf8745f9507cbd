package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

type executed = func(context.Context, *idempotency.Execution) (string, error)

// gives is an external operation that counts its runs.
func gives(runs *int, v string, err error) executed {
	return func(context.Context, *idempotency.Execution) (string, error) {
		*runs++
		return v, err
	}
}

func (s *store) only(t *testing.T) idempotency.Record {
	t.Helper()
	require.Len(t, s.rows, 1)
	for _, rec := range s.rows {
		return rec
	}
	panic("unreachable")
}

func TestAnExternalOperationIsExecutingWhileItRuns(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, nil)
	out, err := idempotency.DoExternal(t.Context(), g, key, fp, func(ctx context.Context, e *idempotency.Execution) (string, error) {
		require.Equal(t, idempotency.Executing, s.only(t).State)
		require.Equal(t, s.only(t).Scope.String(), e.Key())
		_, err := idempotency.DoExternal(ctx, g, key, fp, gives(&runs, "second", nil))
		require.ErrorIs(t, err, fault.IdempotencyInProgress)
		return "paid", nil
	})
	require.NoError(t, err)
	require.Equal(t, idempotency.Outcome[string]{Value: "paid"}, out)
	require.Equal(t, []string{"claim", "execute", "claim", "finish"}, s.calls, "no transaction")

	out, err = idempotency.DoExternal(t.Context(), g, key, fp, gives(&runs, "again", nil))
	require.NoError(t, err)
	require.Equal(t, idempotency.Outcome[string]{Value: "paid", Replayed: true}, out)
	require.Zero(t, runs)
}

func TestWhatAnExternalOperationLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		err   error
		want  idempotency.State
		calls []string
	}{
		"a refusal":     {"declined", fmt.Errorf("limit: %w", idempotency.ErrRejected), idempotency.Failed, []string{"fail"}},
		"no effect":     {"", fmt.Errorf("refused: %w", idempotency.ErrNoEffect), "", []string{"abandon", "release"}},
		"another error": {"", errBoom, idempotency.Abandoned, []string{"abandon"}},
		"a timeout":     {"", context.DeadlineExceeded, idempotency.Abandoned, []string{"abandon"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, runs := newStore(), 0
			g, _ := newGuard(t, s, nil)
			out, err := idempotency.DoExternal(t.Context(), g, key, fp, gives(&runs, c.value, c.err))
			require.Equal(t, append([]string{"claim", "execute"}, c.calls...), s.calls)
			again, repeat := idempotency.DoExternal(t.Context(), g, key, fp, gives(&runs, "again", nil))
			switch c.want {
			case idempotency.Failed:
				require.NoError(t, err)
				require.Equal(t, idempotency.Outcome[string]{Value: "declined", Rejected: true}, out)
				require.NoError(t, repeat)
				require.Equal(t, idempotency.Outcome[string]{Value: "declined", Rejected: true, Replayed: true}, again)
				require.Equal(t, 1, runs)
			case "":
				require.ErrorIs(t, err, idempotency.ErrNoEffect)
				require.NoError(t, repeat)
				require.Equal(t, 2, runs)
			default:
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.want, s.only(t).State)
				require.ErrorIs(t, repeat, fault.IdempotencyAbandoned)
				require.Equal(t, 1, runs)
			}
		})
	}
}

// An operator gets from the log to the record.
func TestAnAbandonedOperationIsNamedInTheLog(t *testing.T) {
	s, runs := newStore(), 0
	var log bytes.Buffer
	g, _ := newGuard(t, s, &idempotency.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	_, err := idempotency.DoExternal(t.Context(), g, key, fp, gives(&runs, "", errBoom))
	require.ErrorIs(t, err, errBoom)
	scope := s.only(t).Scope.String()
	require.Contains(t, log.String(), "scope="+scope)
	_, err = idempotency.DoExternal(t.Context(), g, key, fp, gives(&runs, "again", nil))
	require.ErrorIs(t, err, fault.IdempotencyAbandoned)
	require.ErrorContains(t, err, "scope "+scope)
	require.NotContains(t, log.String()+err.Error(), key.Client)
}

func TestAnExternalOperationThatDoesNotReturnIsAbandoned(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("at the disco") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			s := newStore()
			g, _ := newGuard(t, s, nil)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { _ = recover() }()
				_, _ = idempotency.DoExternal(ctx, g, key, fp, func(context.Context, *idempotency.Execution) (string, error) {
					cancel() // the caller is gone as well
					end()
					return "", nil
				})
			})
			wg.Wait()
			require.Equal(t, idempotency.Abandoned, s.only(t).State)
		})
	}
}

func TestACrashedExecutionIsAbandonedAndNeverRunAgain(t *testing.T) {
	s, runs := newStore(), 0
	g, _ := newGuard(t, s, nil)
	s.failing["abandon"], s.failErr = 1, fault.DBUnavailable // leaves it EXECUTING, as a crash does
	_, err := idempotency.DoExternal(t.Context(), g, key, fp, gives(&runs, "", errBoom))
	require.ErrorIs(t, err, errBoom)
	_, err = idempotency.DoExternal(t.Context(), g, key, fp, gives(&runs, "again", nil))
	require.ErrorIs(t, err, fault.IdempotencyInProgress)
	s.expired = true
	for range 2 {
		_, err = idempotency.DoExternal(t.Context(), g, key, fp, gives(&runs, "again", nil))
		require.ErrorIs(t, err, fault.IdempotencyAbandoned)
		require.Equal(t, idempotency.Abandoned, s.only(t).State)
	}
	require.Equal(t, 1, runs)
}

func TestAnAnswerThatIsHardToStore(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(s *store)
		calls   []string
		want    idempotency.State
		code    fault.Code
	}{
		"at the third try":            {func(s *store) { s.failing["finish"] = 2 }, []string{"finish", "finish", "finish"}, idempotency.Completed, fault.Code{}},
		"stored, and the answer lost": {func(s *store) { s.failing["finish"], s.lostAnswers = 1, true }, []string{"finish", "finish"}, idempotency.Completed, fault.Code{}},
		"taken for interrupted":       {func(s *store) { s.lostAt = "finish" }, []string{"finish"}, idempotency.Executing, fault.IdempotencyAbandoned},
		"taken, and the answer lost":  {func(s *store) { s.failing["finish"], s.lostAt = 1, "finish" }, []string{"finish", "finish"}, idempotency.Executing, fault.IdempotencyAbandoned},
	} {
		t.Run(name, func(t *testing.T) {
			s, runs := newStore(), 0
			g, _ := newGuard(t, s, nil)
			s.failErr = fault.DBUnavailable
			c.arrange(s)
			_, err := idempotency.DoExternal(t.Context(), g, key, fp, gives(&runs, "paid", nil))
			if c.want == idempotency.Completed {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.code)
				require.ErrorIs(t, err, idempotency.ErrStale)
			}
			require.Equal(t, append([]string{"claim", "execute"}, c.calls...), s.calls)
			require.Equal(t, c.want, s.only(t).State)
		})
	}
}

func TestAnAnswerThatCannotBeStoredAbandons(t *testing.T) {
	s := newStore()
	g, _ := newGuard(t, s, nil)
	_, err := idempotency.DoExternal(t.Context(), g, key, fp, func(context.Context, *idempotency.Execution) (func(), error) { return func() {}, nil })
	require.ErrorIs(t, err, fault.IdempotencyAbandoned)
	require.Equal(t, idempotency.Abandoned, s.only(t).State)
}

func TestWhatCannotExecuteDoesNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(s *store)
		want    error
		calls   []string
	}{
		"the claim is lost":      {func(s *store) { s.lostAt = "execute" }, fault.IdempotencyInProgress, nil},
		"it had no effect":       {func(s *store) { s.failing["execute"], s.failErr = 1, fault.DBUnavailable }, fault.DBUnavailable, []string{"release"}},
		"it may have had effect": {func(s *store) { s.failing["execute"], s.failErr = 1, errBoom }, errBoom, []string{"release", "abandon"}},
		"it had, unnoticed":      {func(s *store) { s.failing["execute"], s.failErr, s.lostAnswers = 1, errBoom, true }, errBoom, []string{"release", "abandon", "release"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, runs := newStore(), 0
			g, _ := newGuard(t, s, nil)
			c.arrange(s)
			_, err := idempotency.DoExternal(t.Context(), g, key, fp, gives(&runs, "paid", nil))
			require.ErrorIs(t, err, c.want)
			require.Zero(t, runs)
			require.Equal(t, append([]string{"claim", "execute"}, c.calls...), s.calls)
			if s.lostAt == "" {
				require.Empty(t, s.rows)
			}
		})
	}
}

func TestRenew(t *testing.T) {
	s := newStore()
	g, _ := newGuard(t, s, &idempotency.Options{Lease: time.Minute})
	_, err := idempotency.DoExternal(t.Context(), g, key, fp, func(ctx context.Context, e *idempotency.Execution) (string, error) {
		require.NoError(t, e.Renew(ctx, 0))
		require.NoError(t, e.Renew(ctx, 48*time.Hour), "for longer than the answer is kept")
		require.ErrorContains(t, e.Renew(ctx, -1), "Lease")
		s.expired = true
		_, err := idempotency.DoExternal(ctx, g, key, fp, gives(new(int), "again", nil))
		require.ErrorIs(t, err, fault.IdempotencyAbandoned)
		require.ErrorIs(t, e.Renew(ctx, 0), idempotency.ErrStale)
		return "late", nil
	})
	require.ErrorIs(t, err, fault.IdempotencyAbandoned)
	require.Equal(t, []string{"claim", "execute", "renew 1m0s", "renew 48h0m0s", "claim", "abandon expired", "renew 1m0s", "finish"}, s.calls)
}

func TestDoExternalHoldsNoTransaction(t *testing.T) {
	s, runs := newStore(), 0
	g, runner := newGuard(t, s, nil)
	require.NoError(t, runner.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		_, err := idempotency.DoExternal(ctx, g, key, fp, gives(&runs, "x", nil))
		require.ErrorIs(t, err, tx.ErrNestedRoot)
		require.ErrorContains(t, err, "begin it outside of the transaction")
		return nil
	}))
	require.NotContains(t, s.calls, "claim")
}

// A lease may end between the look and the mark: then it was renewed, or the operation ended.
func TestAnExecutionThatGoesOnIsLookedAtAgain(t *testing.T) {
	s := newStore()
	g, _ := newGuard(t, s, nil)
	_, err := idempotency.DoExternal(t.Context(), g, key, fp, func(ctx context.Context, _ *idempotency.Execution) (string, error) {
		late := &renewing{store: s}
		runner, err := tx.NewRunner(s, nil)
		require.NoError(t, err)
		keys, err := idempotency.NewKeyring("1", secret)
		require.NoError(t, err)
		g, err := idempotency.New(late, runner, keys, nil)
		require.NoError(t, err)
		s.expired = true
		_, err = idempotency.DoExternal(ctx, g, key, fp, gives(new(int), "x", nil))
		require.ErrorIs(t, err, fault.IdempotencyInProgress)
		require.Equal(t, 1, late.asked)
		return "paid", nil
	})
	require.NoError(t, err)
}

// renewing is a store whose executions are renewed just before they would be abandoned.
type renewing struct {
	*store

	asked int
}

func (r *renewing) Abandon(context.Context, idempotency.Claim) (bool, error) {
	r.asked++
	r.expired = false
	return false, nil
}

func TestSettlingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, runs := newStore(), 0
		g, _ := newGuard(t, s, nil)
		s.failing["finish"], s.failErr = 1000, fault.DBUnavailable
		began := time.Now()
		_, err := idempotency.DoExternal(t.Context(), g, key, fp, gives(&runs, "paid", nil))
		require.ErrorIs(t, err, fault.IdempotencyAbandoned)
		require.NotErrorIs(t, err, idempotency.ErrStale)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Equal(t, idempotency.Executing, s.only(t).State)
	})
}
