package idempotencytest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/idempotency/idempotencytest"
)

func TestTheModelFitsACorrectDriver(t *testing.T) {
	idempotencytest.TestModel(t, idempotencytest.Harness{New: func(t *testing.T) idempotencytest.Store {
		t.Helper()
		return newStore(t, "")
	}})
}

func TestTheModelFindsBugs(t *testing.T) {
	for _, bug := range []string{
		"makes a claim twice", "a release keeps the record", "completes at once", "forgets to complete", "ignores the revision",
		"takes over whatever was read", "says nothing to a stale owner", "settles from any state", "executes again", "takes over before the lease has expired", "never takes over",
		"abandons early", "never abandons", "renews nothing", "a renewal is refused after its time", "reaps executions", "reaps early", "reaps nothing", "reaps whatever the age",
	} {
		t.Run(bug, func(t *testing.T) {
			numbers := rand.New(rand.NewPCG(1, 2))
			err := idempotencytest.Walks(t.Context(), newStore(t, bug), 300, func(_ string, n int) int { return numbers.IntN(n) })
			require.Error(t, err)
			t.Log(err)
		})
	}
	require.NoError(t, idempotencytest.Walks(t.Context(), newStore(t, ""), 300, func(_ string, n int) int { return rand.IntN(n) }))
}
