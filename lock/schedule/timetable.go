package schedule

import (
	"fmt"
	"time"
)

// Timetable says when a job is due. Its answers depend on the argument alone, so that all instances agree on them, and have whole microseconds.
// Safe for concurrent use.
type Timetable interface {
	// Last returns the latest slot at or before t, and Next the earliest after it; the zero time where there is none.
	Last(t time.Time) time.Time
	Next(t time.Time) time.Time
	// Validate returns why it is no timetable, and how to write one; [New] asks.
	Validate() error
}

// shortest is the interval below which the look at the clock would cost more than most jobs.
const shortest = 10 * time.Millisecond

// Every returns the timetable whose slots are the whole multiples of d since the Unix epoch: Every(time.Hour) is due on the hour, UTC. d is at least
// 10 ms, in whole microseconds.
func Every(d time.Duration) Timetable { return every(d) }

type every time.Duration

func (e every) Validate() error {
	if d := time.Duration(e); d < shortest || d%time.Microsecond != 0 {
		return fmt.Errorf("Every(%v) is shorter than %v or has a part of a microsecond; use one like time.Minute", d, shortest)
	}
	return nil
}

func (e every) Last(t time.Time) time.Time {
	step, now := time.Duration(e).Microseconds(), t.UnixMicro()
	since := now % step
	if since < 0 {
		since += step // before the epoch
	}
	return time.UnixMicro(now - since).UTC()
}

func (e every) Next(t time.Time) time.Time { return e.Last(t).Add(time.Duration(e)) }
