package suite

import "testing"

// TestBroken tests a suite. bugs maps each bug to the name of the check that finds it; plant returns an S with that bug, and with no
// other. Each check has its turn: one that no bug is caught by proves nothing.
func TestBroken[S any](t *testing.T, checks []Check[S], bugs map[string]string, plant func(t *testing.T, bug string) S) {
	t.Helper()
	byName := map[string]Check[S]{}
	for _, c := range checks {
		byName[c.Name] = c
	}
	seen := map[string]bool{}
	for bug, name := range bugs {
		seen[name] = true
		t.Run(bug, func(t *testing.T) {
			c, ok := byName[name]
			if !ok {
				t.Fatalf("there is no check %q", name)
			}
			err := c.Err(t.Context(), plant(t, bug))
			if err == nil {
				t.Fatalf("the check %q lets the bug pass", name)
			}
			t.Log(err)
		})
	}
	for name := range byName {
		if !seen[name] {
			t.Errorf("the check %q was not seen to fail; plant a bug for it", name)
		}
	}
}
