package idempotencytest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/idempotency/idempotencytest"
)

func TestAHistoryOfACorrectDriverIsOne(t *testing.T) {
	idempotencytest.TestHistory(t, idempotencytest.Harness{New: func(t *testing.T) idempotencytest.Store {
		t.Helper()
		return newStore(t, "")
	}}, nil)
}

func TestAHistoryFindsBugs(t *testing.T) {
	for _, bug := range []string{
		"makes a claim twice", "a release keeps the record", "completes at once", "forgets to complete", "takes over whatever was read",
		"says nothing to a stale owner", "settles from any state", "takes over before the lease has expired", "takes over from a running transaction",
		"abandons early", "reaps executions", "reaps early",
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			var err error
			for try := 0; err == nil && try < 10; try++ { // no play is like another, and the rarest bug shows in most
				err = idempotencytest.Plays(t.Context(), newStore(t, bug), idempotencytest.HistoryOptions{})
			}
			require.ErrorContains(t, err, "cannot have come from")
		})
	}
}

func TestAHistoryWithoutOperationsProvesNothing(t *testing.T) {
	err := idempotencytest.Plays(t.Context(), newStore(t, "a claim fails"), idempotencytest.HistoryOptions{Rounds: 3})
	require.ErrorContains(t, err, "nothing was tested")
}
