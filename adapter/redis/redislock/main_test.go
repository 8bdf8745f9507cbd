package redislock

import (
	"testing"

	"go.uber.org/goleak"
)

// rueidis asks for a cluster's layout a second time, a second later, also where the client is closed by then.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}
