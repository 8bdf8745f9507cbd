package outboxtest

import (
	"slices"
	"testing"

	"caskeleton.dev/internal/testkit/suite"
)

// DriverHarness makes what [TestDriver] tests.
type DriverHarness struct {
	// New returns a store that no other check uses: they run in parallel. It cleans up by t.Cleanup.
	New func(t *testing.T) Store
}

// TestDriver checks what [caskeleton.dev/outbox.Driver] promises, each promise in a subtest of its name.
func TestDriver(t *testing.T, h DriverHarness) {
	t.Helper()
	if h.New == nil {
		t.Fatal("outboxtest: DriverHarness.New is required: let it return an empty store")
	}
	suite.Test(t, driverChecks(), h.New)
}

func driverChecks() []suite.Check[Store] {
	return slices.Concat(recording(), claiming(), settling(), waiting())
}
