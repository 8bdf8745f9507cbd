package postgres

import "time"

// Millis is d as a setting of the server takes it, in milliseconds, rounded up like [Micros]: 0 would mean no limit at all.
func Millis(d time.Duration) int64 { return roundUp(d, time.Millisecond) }

// Micros is d as the statements of stores take it, in microseconds, rounded up: what the database is given to keep, as a lease, is never less
// than was asked for, and never nothing.
func Micros(d time.Duration) int64 { return roundUp(d, time.Microsecond) }

func roundUp(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}
