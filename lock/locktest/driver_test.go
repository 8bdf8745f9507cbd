package locktest_test

import (
	"crypto/rand"
	"testing"

	"go.uber.org/goleak"

	"caskeleton.dev/internal/testkit/suite"
	"caskeleton.dev/lock/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestACorrectDriverPasses(t *testing.T) {
	h := locktest.Harness{New: func(t *testing.T) locktest.Store {
		t.Helper()
		return newStore(t, "")
	}}
	locktest.TestDriver(t, h)
	locktest.TestHistory(t, h, nil)
	shared := newStore(t, "")
	t.Run("apart", func(t *testing.T) {
		locktest.TestDriver(t, locktest.Harness{New: func(*testing.T) locktest.Store { return locktest.Apart(shared, rand.Text()) }})
	})
}

func TestABrokenDriverFails(t *testing.T) {
	suite.TestBroken(t, locktest.DriverChecks(), map[string]string{
		"lets anyone in":                                 "one token holds a key",
		"a try takes the key away":                       "one token holds a key",
		"a node has its own keys":                        "one token holds a key",
		"checks and then writes":                         "of many at once one gets the key",
		"contention is an error":                         "of many at once one gets the key",
		"releases by key":                                "only its token gives a key back",
		"releases what nobody held":                      "only its token gives a key back",
		"a release says Released, and keeps the key":     "releasing again changes nothing",
		"releases twice":                                 "releasing again changes nothing",
		"a lease never passes":                           "a lease that has passed holds nothing",
		"a look shows who has passed":                    "a lease that has passed holds nothing",
		"a waiter does not take over":                    "a lease that has passed holds nothing",
		"a late release is silent":                       "a late release is told, and frees nobody else's",
		"a late release frees the next one's":            "a late release is told, and frees nobody else's",
		"renews for anyone":                              "a renewal is for the holder while it holds",
		"revives a lease":                                "a renewal is for the holder while it holds",
		"never shortens":                                 "a renewal is for the holder while it holds",
		"does not renew":                                 "a renewal is for the holder while it holds",
		"folds case":                                     "keys are exact",
		"compares 200 characters":                        "keys are exact",
		"trims":                                          "keys are exact",
		"ignores the region":                             "keys are exact",
		"joins region and name":                          "keys are exact",
		"replaces invalid UTF-8":                         "keys are exact",
		"a try extends the lease":                        "the holder's lease counts, to its end",
		"the asker's lease decides":                      "the holder's lease counts, to its end",
		"overflows":                                      "the holder's lease counts, to its end",
		"forgets short leases":                           "the holder's lease counts, to its end",
		"marks for anyone":                               "a waiter marks the key",
		"never marks":                                    "a waiter marks the key",
		"a renewal forgets the waiter":                   "a waiter marks the key",
		"keeps the mark":                                 "a waiter marks the key",
		"announces nothing":                              "a contended release is announced",
		"announces every release":                        "a contended release is announced",
		"announces another key":                          "a contended release is announced",
		"is never ready":                                 "listening ends with its context",
		"listens for ever":                               "listening ends with its context",
		"listening ends without an error":                "listening ends with its context",
		"does not heed the context":                      "a call that is cut off leaves nothing behind",
		"grants after it was cut off":                    "a call that is cut off leaves nothing behind",
		"a waiter holds a connection":                    "waiters leave the holder its connections",
		"now and then two get in":                        "waiters leave the holder its connections",
		"remembers what it saw":                          "a waiter gets what is given back or has passed",
		"now and then grants what is held":               "the history is that of a lock",
		"now and then loses a lease":                     "the history is that of a lock",
		"now and then a release frees what is another's": "the history is that of a lock",
	}, newStore)
}
