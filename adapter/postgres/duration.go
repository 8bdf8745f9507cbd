package postgres

import "time"

// Millis returns d in whole milliseconds, as the server's settings take it. It rounds up, as [Micros] does: a timeout of 0 would mean no
// limit.
func Millis(d time.Duration) int64 { return roundUp(d, time.Millisecond) }

// Micros returns d in whole microseconds, as the statements of stores take it. It rounds up, so that what the database keeps, such as a
// lease, is never shorter than was asked for.
func Micros(d time.Duration) int64 { return roundUp(d, time.Microsecond) }

func roundUp(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
