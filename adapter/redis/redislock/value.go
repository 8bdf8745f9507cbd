package redislock

import (
	"encoding/hex"
	"time"

	"github.com/redis/rueidis"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

// A value is the token in hex, a mark, and the key's name to be read by people. The scripts know where the mark is.
const (
	unmarked = "."
	marked   = "!" // somebody waits: the release is to be published
)

func tokenText(t lock.Token) string { return hex.EncodeToString(t[:]) }

func value(t lock.Token, k lock.Key) string { return tokenText(t) + unmarked + k.Display() }

var errForeign error = fault.Text("redislock: the key's value is not a lock's: something else writes under the driver's prefix; delete the key, or choose another prefix")

// holder reads what the scripts return: nil, or the mark and the milliseconds that are left.
func holder(res rueidis.RedisResult) (lock.Holder, error) {
	reply, err := res.ToArray()
	if rueidis.IsRedisNil(err) {
		return lock.Holder{}, nil
	}
	if err != nil {
		return lock.Holder{}, err
	}
	if len(reply) != 2 {
		return lock.Holder{}, errForeign
	}
	mark, err := reply[0].ToString()
	if err != nil {
		return lock.Holder{}, err
	}
	left, err := reply[1].AsInt64()
	if err != nil {
		return lock.Holder{}, err
	}
	if left < 0 || mark != unmarked && mark != marked {
		return lock.Holder{}, errForeign
	}
	// 0 is less than a millisecond, and it is held for that long.
	return lock.Holder{Held: true, Left: max(time.Duration(left)*time.Millisecond, time.Millisecond), Contended: mark == marked}, nil
}
