package inboxtest_test

import (
	"testing"

	"caskeleton.dev/inbox/inboxtest"
	"caskeleton.dev/internal/testkit/suite"
)

func TestACorrectDriverPasses(t *testing.T) {
	inboxtest.TestDriver(t, inboxtest.DriverHarness{New: func(t *testing.T) inboxtest.Store {
		t.Helper()
		return newStore(t, "")
	}})
}

func TestABrokenDriverFails(t *testing.T) {
	suite.TestBroken(t, inboxtest.DriverChecks(), map[string]string{
		"completes outside of the transaction": "a rollback gives the message back",
		"runs a duplicate again":               "a message is claimed once",
		"completes no counted message":         "a message is claimed once",
		"lets a concurrent duplicate in":       "a concurrent duplicate waits or is busy",
		"calls an open message done":           "a concurrent duplicate waits or is busy",
		"counts an open message":               "a concurrent duplicate waits or is busy",
		"parks an open message":                "a concurrent duplicate waits or is busy",
		"a rollback undoes attempts":           "attempts survive rollbacks",
		"attempts ride the transaction":        "attempts survive rollbacks",
		"counts a completed message":           "attempts survive rollbacks",
		"a claim takes a parked message":       "a parked message stays parked",
		"an attempt takes a parked message":    "a parked message stays parked",
		"parks twice":                          "a parked message stays parked",
		"parks a completed message":            "a completed message is never parked",
		"says done and parks":                  "a completed message is never parked",
		"ignores the consumer":                 "other messages and consumers are unaffected",
	}, newStore)
}
