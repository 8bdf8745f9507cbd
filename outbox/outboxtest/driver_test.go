package outboxtest_test

import (
	"testing"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/outbox/outboxtest"
)

func TestACorrectDriverPasses(t *testing.T) {
	outboxtest.TestDriver(t, outboxtest.DriverHarness{New: func(t *testing.T) outboxtest.Store {
		t.Helper()
		return newStore(t, "")
	}})
}

func TestABrokenDriverFails(t *testing.T) {
	suite.TestBroken(t, outboxtest.DriverChecks(), map[string]string{
		"delivers before commit":         "delivered if and only if committed",
		"delivers what was rolled back":  "delivered if and only if committed",
		"drops headers":                  "delivered as recorded",
		"puts new events first":          "in commit order without holes",
		"skips a sequence":               "in commit order without holes",
		"loses an open append":           "an open append hides nothing and blocks nothing",
		"accepts a duplicate id":         "a duplicate id fails the transaction",
		"commits after a duplicate id":   "a duplicate id fails the transaction",
		"locks in the order of the call": "one call locks its aggregates in one order",
		"overtakes the head":             "nothing overtakes the head",
		"claims a leased lane":           "a lane is claimed once at a time",
		"one token a lane":               "a lane is claimed once at a time",
		"ignores the limit":              "limits are respected",
		"ignores the run size":           "limits are respected",
		"says no More":                   "limits are respected",
		"hears no bell":                  "rung lanes come first, at most half of the limit",
		"bells take the whole limit":     "rung lanes come first, at most half of the limit",
		"a bell ends a back-off":         "a bell shortens no back-off",
		"ignores the floor":              "lanes below the floor are not looked at",
		"no owner predicate":             "a claim with a stale owner changes nothing",
		"no token predicate":             "a claim with a stale token changes nothing",
		"no next predicate":              "a claim with a stale next changes nothing",
		"no epoch predicate":             "a claim with a stale epoch changes nothing",
		"reports no loss":                "a claim with a stale owner changes nothing",
		"settles for anyone":             "a claim with a stale token changes nothing",
		"renews for anyone":              "a claim with a stale token changes nothing",
		"never takes over":               "an expired lease is taken over",
		"renews nothing":                 "a lease is renewed",
		"counts no attempt":              "attempt counts claims of the head",
		"resets no attempt":              "attempt counts claims of the head",
		"giving back counts":             "attempt counts claims of the head",
		"looking in vain counts":         "an empty run is settled",
		"keeps drained lanes":            "a drained lane goes away and comes back",
		"retries at once":                "a failed head waits for its retry",
		"tells the last due time":        "the next due time is told",
	}, newStore)
}
