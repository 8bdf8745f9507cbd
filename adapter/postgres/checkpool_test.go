package postgres_test

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

func TestCheckPool(t *testing.T) {
	for _, c := range []struct {
		conns          int32
		workers, depth int
		problem        string
	}{
		{1, 100, 1, ""},
		{101, 100, 2, ""},
		{100, 100, 2, "MaxConns = 100: is less than workers x (depth - 1) + 1 = 100 x (2 - 1) + 1 = 101"},
		{9, 4, 3, ""},
		{8, 4, 3, "raise it to 9, or run fewer workers"},
		{0, 9, 2, ""}, // the default, 10
		{0, 10, 2, "raise it to 11"},
		{5, 0, 1, "0 workers"},
		{5, 1, 0, "depth 0"},
		{5, math.MaxInt, math.MaxInt, "less than the connections of any server"},
		{math.MaxInt32, math.MaxInt32, math.MaxInt32, "is less than workers"},
	} {
		err := postgres.CheckPool(c.conns, c.workers, c.depth)
		if c.problem == "" {
			require.NoError(t, err, c)
		} else {
			require.ErrorContains(t, err, c.problem, c)
		}
	}
}

// The formula is right: with as many connections all workers get through, with one less they may all wait for each other.
func TestWorkersInsideTransactions(t *testing.T) {
	const workers, depth = 3, 2
	dsn := pgtest.DSN(t)
	for conns, starved := range map[int32]bool{workers*(depth-1) + 1: false, workers * (depth - 1): true} {
		require.Equal(t, starved, postgres.CheckPool(conns, workers, depth) != nil)
		db := open(t, postgres.Config{DSN: dsn, MaxConns: conns, AcquireTimeout: 2 * time.Second})
		runner, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		var outer, ends sync.WaitGroup
		outer.Add(workers)
		errs := make([]error, workers)
		for i := range errs {
			ends.Go(func() {
				errs[i] = runner.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
					outer.Done()
					outer.Wait() // all hold their first connection
					return runner.InNew(ctx, func(context.Context, *tx.Tx) error { return nil })
				})
			})
		}
		ends.Wait()
		failed := 0
		for _, err := range errs {
			if err != nil {
				require.ErrorIs(t, err, fault.DBPoolExhausted)
				failed++
			}
		}
		require.Equal(t, starved, failed > 0, "%d connections", conns)
	}
}
