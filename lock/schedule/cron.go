package schedule

import (
	"errors"
	"fmt"
	"time"
)

// Cron returns the timetable of a crontab line's first five fields, in UTC: minute (0-59), hour (0-23), day of the month (1-31), month (1-12 or
// JAN-DEC) and day of the week (0-7 or SUN-SAT; 0 and 7 are Sunday). A field is a list, divided by commas, of numbers or names, ranges (1-5), and
// steps through a range or through all (1-30/2, */5). [New] refuses what cannot be read, and what never comes.
//
// The two fields for days follow Vixie's cron ("the dom/dow situation is odd", cron.c; crontab(5)): where neither begins with *, a day that matches
// either is meant; otherwise one that matches both. So "0 0 13 * FRI" is each 13th and each Friday, and "0 0 * * FRI" each Friday.
func Cron(spec string) Timetable {
	c, err := parse(spec)
	if err != nil {
		return cron{err: fmt.Errorf("Cron(%q): %w", spec, err)}
	}
	if c.Next(time.Unix(0, 0)).IsZero() {
		c.err = fmt.Errorf("Cron(%q): no day is ever like that; correct the day of the month or the month", spec)
	}
	return c
}

// cron has a bit for each value that matches.
type cron struct {
	minute, hour, day, month, weekday uint64
	both                              bool // a day must match both fields
	err                               error
}

func (c cron) Validate() error {
	if c.err == nil && c.minute == 0 {
		return errors.New("the zero timetable; use Cron or Every")
	}
	return c.err
}

// cycle is the days after which the calendar repeats itself: where none of them matches, none ever does.
const cycle = 146_097

const minutes = 24 * 60 // of a day

func (c cron) Next(t time.Time) time.Time {
	from := t.UTC().Truncate(time.Minute).Add(time.Minute)
	midnight, first := split(from)
	for range cycle {
		if c.matches(midnight) {
			for m := first; m < minutes; m++ {
				if c.at(m) {
					return midnight.Add(time.Duration(m) * time.Minute)
				}
			}
		}
		midnight, first = midnight.AddDate(0, 0, 1), 0
	}
	return time.Time{}
}

func (c cron) Last(t time.Time) time.Time {
	midnight, last := split(t.UTC().Truncate(time.Minute))
	for range cycle {
		if c.matches(midnight) {
			for m := last; m >= 0; m-- {
				if c.at(m) {
					return midnight.Add(time.Duration(m) * time.Minute)
				}
			}
		}
		midnight, last = midnight.AddDate(0, 0, -1), minutes-1
	}
	return time.Time{}
}

// split returns the midnight of a UTC time, and the minutes since.
func split(t time.Time) (midnight time.Time, minute int) {
	return t.Truncate(24 * time.Hour), t.Hour()*60 + t.Minute()
}

func (c cron) matches(day time.Time) bool {
	if !has(c.month, int(day.Month())) {
		return false
	}
	inMonth, inWeek := has(c.day, day.Day()), has(c.weekday, int(day.Weekday()))
	if c.both {
		return inMonth && inWeek
	}
	return inMonth || inWeek
}

func (c cron) at(minute int) bool { return has(c.hour, minute/60) && has(c.minute, minute%60) }

func has(set uint64, n int) bool { return set&(1<<n) != 0 }
