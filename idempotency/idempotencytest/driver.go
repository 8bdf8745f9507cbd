package idempotencytest

import (
	"testing"

	"caskeleton.dev/internal/testkit/suite"
)

// TestDriver checks what [idempotency.Driver] promises, each promise in a subtest of its name.
func TestDriver(t *testing.T, h Harness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("idempotencytest: Harness.New is required: let it return an empty store")
	}
	suite.Test(t, driverChecks(), h.New)
}

func driverChecks() []suite.Check[Store] {
	return []suite.Check[Store]{
		{Name: "a key is claimed once", Run: once},
		{Name: "an answer comes with its commit", Run: commits},
		{Name: "an answer is what was stored", Run: answers},
		{Name: "a stale owner changes nothing", Run: stale},
		{Name: "an operation fits the state", Run: states},
		{Name: "only an expired claim is taken over", Run: takeOvers},
		{Name: "a running transaction is waited for by nobody", Run: running},
		{Name: "an execution is abandoned when its lease has expired", Run: abandons},
		{Name: "what has expired is reaped", Run: reaps},
		{Name: "other versions of a key are found", Run: versions},
		{Name: "secrets are told apart", Run: secrets},
		{Name: "operators find records", Run: finds},
		{Name: "what an operator settles comes with its commit", Run: reconciles},
		{Name: "objects live while they may be an answer", Run: objects},
	}
}
