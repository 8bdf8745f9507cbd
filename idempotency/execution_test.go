package idempotency_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// Who keeps an execution for longer than it lasts holds nothing: neither its record, nor that of the next one of the key.
func TestAnExecutionThatHasEndedRenewsNothing(t *testing.T) {
	for name, end := range map[string]error{"completed": nil, "refused": idempotency.ErrRejected, "without effect": idempotency.ErrNoEffect, "abandoned": errBoom} {
		t.Run(name, func(t *testing.T) {
			w := newWhole(t, idempotency.Options{Lease: time.Minute})
			var kept *idempotency.Execution
			_, err := idempotency.DoExternal(t.Context(), w.Guard, key, fp, func(_ context.Context, e *idempotency.Execution) (string, error) {
				kept = e
				return "x", end
			})
			require.Equal(t, end == nil || end == idempotency.ErrRejected, err == nil) //nolint:errorlint // it is what was returned
			before, _ := w.Show(t.Context(), key)
			require.ErrorIs(t, kept.Renew(t.Context(), time.Hour), idempotency.ErrStale)
			after, _ := w.Show(t.Context(), key)
			require.Equal(t, before, after)
			if end != idempotency.ErrNoEffect { //nolint:errorlint // likewise
				return
			}
			_, err = idempotency.DoExternal(t.Context(), w.Guard, key, fp, func(ctx context.Context, e *idempotency.Execution) (string, error) {
				require.Equal(t, kept.Key(), e.Key())
				require.ErrorIs(t, kept.Renew(ctx, time.Hour), idempotency.ErrStale)
				now, err := w.Show(ctx, key)
				require.NoError(t, err)
				require.Equal(t, time.Minute, now.Lease.Sub(now.Updated))
				return "x", nil
			})
			require.NoError(t, err)
		})
	}
}

// A key within itself is a duplicate like any other, and waits for nobody.
func TestAKeyWithinItselfIsTurnedAway(t *testing.T) {
	for name, outer := range map[string]func(g *idempotency.Guard, inner func(ctx context.Context)) error{
		"transactional": func(g *idempotency.Guard, inner func(ctx context.Context)) error {
			_, err := idempotency.Do(t.Context(), g, key, fp, func(ctx context.Context, _ *tx.Tx) (string, error) {
				_, err := idempotency.Do(ctx, g, key, fp, answer(new(int), "inner"))
				require.ErrorIs(t, err, tx.ErrNestedRoot)
				_, err = idempotency.DoExternal(ctx, g, key, fp, gives(new(int), "inner", nil))
				require.ErrorIs(t, err, tx.ErrNestedRoot)
				inner(t.Context())
				return "outer", nil
			})
			return err
		},
		"external": func(g *idempotency.Guard, inner func(ctx context.Context)) error {
			_, err := idempotency.DoExternal(t.Context(), g, key, fp, func(ctx context.Context, _ *idempotency.Execution) (string, error) {
				inner(ctx)
				return "outer", nil
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := newWhole(t, idempotency.Options{}), 0
			require.NoError(t, outer(w.Guard, func(ctx context.Context) {
				_, err := idempotency.Do(ctx, w.Guard, key, fp, answer(&runs, "inner"))
				require.ErrorIs(t, err, fault.IdempotencyInProgress)
				_, err = idempotency.DoExternal(ctx, w.Guard, key, fp, gives(&runs, "inner", nil))
				require.ErrorIs(t, err, fault.IdempotencyInProgress)
			}))
			out, err := idempotency.Do(t.Context(), w.Guard, key, fp, answer(&runs, "again"))
			require.NoError(t, err)
			require.Equal(t, idempotency.Outcome[string]{Value: "outer", Replayed: true}, out)
			require.Zero(t, runs)
		})
	}
}

func TestAnOperationThatEndsItsGoroutineReleasesTheClaim(t *testing.T) {
	w := newWhole(t, idempotency.Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = idempotency.Do(t.Context(), w.Guard, key, fp, func(context.Context, *tx.Tx) (string, error) {
			runtime.Goexit()
			return "", nil
		})
	})
	wg.Wait()
	_, err := w.Show(t.Context(), key)
	require.ErrorIs(t, err, idempotency.ErrNoRecord)
}

// ending is a driver whose Complete fails once its answer is kept.
type ending struct {
	idempotency.Driver

	err error
}

func (e *ending) Complete(ctx context.Context, t *tx.Tx, c idempotency.Claim, a idempotency.Answer) error {
	if e.err != nil {
		return e.err
	}
	return e.Driver.Complete(ctx, t, c, a)
}

// An object is put before its record says so. One whose transaction came to nothing is an orphan, unless it may yet have committed.
func TestAnObjectOutlivesItsTransactionNoLongerThanItsClaim(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		orphans []int // found when the transaction has ended, when another one has completed, and when the answer has expired
	}{
		"rolled back": {errBoom, []int{1, 0, 1}},
		"not known":   {fault.New(fault.DBCommitUnknown, "test", nil), []int{0, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := newWhole(t, idempotency.Options{}), 0
			d := &ending{w.driver, c.err}
			g := guardOn(t, d, idempotency.Options{Responses: w.objects}, "1")
			r, err := idempotency.NewReaper(g, nil)
			require.NoError(t, err)
			reaps := func(want int) {
				done, err := r.Pass(t.Context())
				require.NoError(t, err)
				require.Equal(t, want, done.Orphans)
			}
			_, err = idempotency.Do(t.Context(), g, key, fp, answer(&runs, large))
			require.ErrorIs(t, err, c.err)
			require.Len(t, w.objects.kept, 1)
			reaps(c.orphans[0])
			d.err = nil
			w.ahead += time.Minute // past the lease
			for n := range 3 {
				out, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, large+fmt.Sprint(n)))
				require.NoError(t, err)
				require.Equal(t, idempotency.Outcome[string]{Value: large + "0", Replayed: n > 0}, out)
				if n == 1 {
					reaps(c.orphans[1])
				}
			}
			require.Equal(t, 2, runs)
			require.Len(t, w.objects.kept, 1)
			w.ahead += 25 * time.Hour
			reaps(c.orphans[2])
			require.Empty(t, w.objects.kept)
		})
	}
}

func TestAnAnswerIsGivenAgainOnceItsStoreIsBack(t *testing.T) {
	w, runs := newWhole(t, idempotency.Options{}), 0
	g := w.guard(t, idempotency.Options{Responses: w.objects})
	_, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, large))
	require.NoError(t, err)
	w.objects.err = errBoom
	for range 2 {
		_, err = idempotency.Do(t.Context(), g, key, fp, answer(&runs, large))
		require.ErrorIs(t, err, errBoom)
	}
	w.objects.err = nil
	out, err := idempotency.Do(t.Context(), g, key, fp, answer(&runs, large))
	require.NoError(t, err)
	require.Equal(t, idempotency.Outcome[string]{Value: large, Replayed: true}, out)
	require.Equal(t, 1, runs)
}

// What a store gives back is not given on unless it is what was put, to the byte.
func TestAnAnswerThatComesBackOtherwiseIsNotGiven(t *testing.T) {
	for name, spoil := range map[string]func([]byte) []byte{
		"cut short": func(b []byte) []byte { return b[:len(b)-1] },
		"nothing":   func([]byte) []byte { return nil },
		"another":   func(b []byte) []byte { return append(bytes.Clone(b[:len(b)-1]), 'y') },
	} {
		t.Run(name, func(t *testing.T) {
			w, runs := newWhole(t, idempotency.Options{}), 0
			g := w.guard(t, idempotency.Options{Responses: w.objects})
			do := func() (idempotency.Outcome[verbatim], error) {
				return idempotency.Do(t.Context(), g, key, fp, func(context.Context, *tx.Tx) (verbatim, error) {
					runs++
					return verbatim(large), nil
				})
			}
			_, err := do()
			require.NoError(t, err)
			for ref, object := range w.objects.kept {
				w.objects.kept[ref] = spoil(object)
			}
			_, err = do()
			require.ErrorContains(t, err, "not those that were put")
			require.Equal(t, 1, runs)
		})
	}
}
