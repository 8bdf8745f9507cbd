package idempotencytest_test

import (
	"testing"

	"caskeleton.dev/idempotency/idempotencytest"
	"caskeleton.dev/internal/testkit/suite"
)

func TestACorrectDriverPasses(t *testing.T) {
	idempotencytest.TestDriver(t, idempotencytest.Harness{New: func(t *testing.T) idempotencytest.Store {
		t.Helper()
		return newStore(t, "")
	}})
}

func TestABrokenDriverFails(t *testing.T) {
	suite.TestBroken(t, idempotencytest.DriverChecks(), map[string]string{
		"makes a claim twice":                      "a key is claimed once",
		"a release keeps the record":               "a key is claimed once",
		"checks and then writes":                   "a key is claimed once",
		"forgets the fingerprint":                  "a key is claimed once",
		"completes at once":                        "an answer comes with its commit",
		"forgets to complete":                      "an answer comes with its commit",
		"completes twice":                          "an answer comes with its commit",
		"no bytes are no answer":                   "an answer is what was stored",
		"truncates":                                "an answer is what was stored",
		"drops refs":                               "an answer is what was stored",
		"ignores the owner":                        "a stale owner changes nothing",
		"ignores the attempt":                      "a stale owner changes nothing",
		"ignores the operation":                    "a stale owner changes nothing",
		"ignores the revision":                     "a stale owner changes nothing",
		"takes over whatever was read":             "a stale owner changes nothing",
		"says nothing to a stale owner":            "a stale owner changes nothing",
		"settles from any state":                   "an operation fits the state",
		"executes again":                           "an operation fits the state",
		"renews a claim":                           "an operation fits the state",
		"takes over before the lease has expired":  "only an expired claim is taken over",
		"never takes over":                         "only an expired claim is taken over",
		"a take-over keeps the lease":              "only an expired claim is taken over",
		"takes over from a running transaction":    "a running transaction is waited for by nobody",
		"a claim waits for a running transaction":  "a running transaction is waited for by nobody",
		"reaps beside a running transaction":       "a running transaction is waited for by nobody",
		"finds claims interrupted":                 "a running transaction is waited for by nobody",
		"abandons early":                           "an execution is abandoned when its lease has expired",
		"never abandons":                           "an execution is abandoned when its lease has expired",
		"renews nothing":                           "an execution is abandoned when its lease has expired",
		"a renewal is refused after its time":      "an execution is abandoned when its lease has expired",
		"expires without a limit":                  "an execution is abandoned when its lease has expired",
		"reaps executions":                         "what has expired is reaped",
		"reaps early":                              "what has expired is reaped",
		"reaps claims whose lease has not expired": "what has expired is reaped",
		"keeps no late answer":                     "what has expired is reaped",
		"reaps nothing":                            "what has expired is reaped",
		"reaps whatever the age":                   "what has expired is reaped",
		"reaps from the beginning":                 "what has expired is reaped",
		"knows the current version only":           "other versions of a key are found",
		"a take-over goes to the current version":  "other versions of a key are found",
		"prefers claims":                           "other versions of a key are found",
		"starts beside another version":            "other versions of a key are found",
		"executes beside another version":          "other versions of a key are found",
		"any secret will do":                       "secrets are told apart",
		"a new version may claim":                  "secrets are told apart",
		"retires what is in use":                   "secrets are told apart",
		"an enrolled version need not be known":    "secrets are told apart",
		"finds nothing":                            "operators find records",
		"lists from the beginning":                 "operators find records",
		"lists any state":                          "operators find records",
		"reads no large answer":                    "operators find records",
		"reads what is not there":                  "operators find records",
		"reconciles at once":                       "what an operator settles comes with its commit",
		"reconciles nothing":                       "what an operator settles comes with its commit",
		"reconciles without the answer":            "what an operator settles comes with its commit",
		"reconciles from any state":                "an operation fits the state",
		"retires at once":                          "secrets are told apart",
		"what an execution may write is no object": "objects live while they may be an answer",
		"any object of a record lives":             "objects live while they may be an answer",
	}, newStore)
}
