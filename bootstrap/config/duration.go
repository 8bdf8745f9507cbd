package config

import (
	"strings"
	"time"
)

// parseDuration reads a Go duration that is not negative and has a unit: "1h30m", "250ms". Where it cannot, it says what is wrong
// and what to write.
func parseDuration(s string) (d time.Duration, problem, fix string) {
	if digits(s) {
		return 0, "has no unit", "write " + s + "s for seconds, " + s + "ms for milliseconds or " + s + "m for minutes"
	}
	if n, ok := strings.CutSuffix(s, "d"); ok && digits(n) {
		return 0, "is in days, which are not always 24 hours long", "write it in hours, as in 168h for a week"
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, "is not a duration", "write a number with a unit (ms, s, m or h), as in 250ms, 10s or 1h30m"
	case strings.HasPrefix(s, "-"):
		return 0, "is negative", "write a duration without the sign"
	case d == 0 && !strings.ContainsAny(s, "smh"):
		return 0, "has no unit", "write 0s"
	}
	return d, "", ""
}

// formatDuration is the shortest text that parseDuration reads back as d: "30m" for what time prints as "30m0s".
func formatDuration(d time.Duration) string {
	s := d.String()
	if t, ok := strings.CutSuffix(s, "m0s"); ok {
		s = t + "m"
	}
	if t, ok := strings.CutSuffix(s, "h0m"); ok {
		s = t + "h"
	}
	return s
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
