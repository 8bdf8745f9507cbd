package schedule

import (
	"fmt"
	"strconv"
	"strings"
)

// field is what one place of a crontab line may hold.
type field struct {
	name     string
	min, max int
	names    string // three letters each, from min on
}

func fields() [5]field {
	return [5]field{
		{"minute", 0, 59, ""},
		{"hour", 0, 23, ""},
		{"day of the month", 1, 31, ""},
		{"month", 1, 12, "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"},
		{"day of the week", 0, 7, "SUNMONTUEWEDTHUFRISAT"},
	}
}

func parse(spec string) (cron, error) {
	texts := strings.Fields(spec)
	var sets [5]uint64
	if len(texts) != len(sets) {
		return cron{}, fmt.Errorf("has %d fields; write five, minute, hour, day of the month, month and day of the week, as in */5 * * * *", len(texts))
	}
	for i, f := range fields() {
		var err error
		if sets[i], err = f.parse(texts[i]); err != nil {
			return cron{}, fmt.Errorf("%s %q %w", f.name, texts[i], err)
		}
	}
	c := cron{minute: sets[0], hour: sets[1], day: sets[2], month: sets[3], weekday: sets[4]}
	if has(c.weekday, 7) {
		c.weekday |= 1 // Sunday
	}
	c.both = texts[2][0] == '*' || texts[4][0] == '*'
	return c, nil
}

// parse returns the set of a field's text.
func (f field) parse(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		what, stepText, stepped := strings.Cut(part, "/")
		from, to, err := f.bounds(what, stepped)
		if err != nil {
			return 0, err
		}
		step := 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.max {
				return 0, fmt.Errorf("has the step %q; write a number from 1 to %d, as in */%d", stepText, f.max, min(5, f.max))
			}
		}
		for n := from; n <= to; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

// bounds returns what a part goes through.
func (f field) bounds(what string, stepped bool) (from, to int, err error) {
	if what == "*" {
		return f.min, f.max, nil
	}
	first, last, isRange := strings.Cut(what, "-")
	if from, err = f.value(first); err != nil {
		return 0, 0, err
	}
	if !isRange {
		if stepped {
			return 0, 0, fmt.Errorf("has a step and no range; write %s-%d/ in place of %s/", first, f.max, first)
		}
		return from, from, nil
	}
	if to, err = f.value(last); err != nil {
		return 0, 0, err
	}
	if from > to {
		return 0, 0, fmt.Errorf("has a range that ends before it begins; write two, %s-%d,%d-%s", first, f.max, f.min, last)
	}
	return from, to, nil
}

// value reads a number or a name.
func (f field) value(text string) (int, error) {
	if len(text) == 3 {
		if i := strings.Index(f.names, strings.ToUpper(text)); i >= 0 && i%3 == 0 {
			return f.min + i/3, nil
		}
	}
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || int(n) < f.min || int(n) > f.max {
		allowed := fmt.Sprintf("a number from %d to %d", f.min, f.max)
		if f.names != "" {
			allowed += " or a name like " + f.names[:3]
		}
		return 0, fmt.Errorf("has %q in it; write %s", text, allowed)
	}
	return int(n), nil
}
