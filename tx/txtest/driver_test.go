package txtest_test

import (
	"testing"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/tx/txtest"
)

func TestACorrectDriverPasses(t *testing.T) {
	txtest.TestDriver(t, txtest.Harness{New: func(t *testing.T) txtest.Store {
		t.Helper()
		return newStore(t, "")
	}})
}

func TestADriverWithoutALimitPasses(t *testing.T) {
	txtest.TestDriver(t, txtest.Harness{New: func(t *testing.T) txtest.Store {
		t.Helper()
		s := newStore(t, "has no bound")
		s.Limit = 0
		return s
	}})
}

func TestABrokenDriverFails(t *testing.T) {
	const (
		commit    = "a commit keeps everything, for everybody, at once"
		comesBack = "the connection comes back"
		afterEnd  = "nothing goes on after the end"
		bounded   = "beginning is bounded"
		savepoint = "a savepoint is undone alone"
		readOnly  = "read-only is refused, and ends with its scope"
		lost      = "a lost commit is unknown, or looked up right"
	)
	suite.TestBroken(t, txtest.DriverChecks(), map[string]string{
		"commits nothing":                          commit,
		"shows what is not committed":              commit,
		"keeps what was rolled back":               "a rollback keeps nothing",
		"keeps the connection after a commit":      comesBack,
		"keeps the connection after a rollback":    comesBack,
		"keeps the connection of a dead commit":    comesBack,
		"does not know what it never sent":         comesBack,
		"begins for nobody":                        comesBack,
		"ends twice":                               afterEnd,
		"writes after the end":                     afterEnd,
		"has no bound":                             bounded,
		"does not say what is exhausted":           bounded,
		"commits after an error":                   "a failed statement fails the commit",
		"undoes nothing":                           savepoint,
		"undoes too much":                          savepoint,
		"a release drops what was done":            savepoint,
		"stays aborted":                            savepoint,
		"writes when read-only":                    readOnly,
		"writes in a scope inside a read-only one": readOnly,
		"stays read-only":                          readOnly,
		"takes silence for success":                lost,
		"guesses that it has committed":            lost,
		"guesses that it has not committed":        lost,
		"does not look":                            lost,
	}, newStore)
}
