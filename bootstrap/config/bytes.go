package config

import (
	"math"
	"strconv"
	"strings"
)

var byteUnits = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// parseBytes reads a whole number of B, KiB, MiB or GiB: "8KiB". Where it cannot, it says what is wrong and what to write.
func parseBytes(s string) (n int64, problem, fix string) {
	if digits(s) {
		return 0, "has no unit", "write " + s + "B for bytes or " + s + "KiB for units of 1024 bytes"
	}
	number := strings.TrimRight(s, "BKMGTikmgtb")
	unit := s[len(number):]
	if !digits(number) {
		return 0, "is not a size", "write a whole number with a unit (B, KiB, MiB or GiB), as in 8KiB"
	}
	for _, u := range byteUnits {
		if unit != u.name {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > math.MaxInt64/u.size {
			return 0, "is too large", "write a size below 8589934592GiB"
		}
		return n * u.size, "", ""
	}
	return 0, "has a unit that is not known", "write B, KiB (1024 bytes), MiB or GiB, as in 8KiB"
}

// formatBytes is n in the largest unit that leaves a whole number.
func formatBytes(n int64) string {
	for _, u := range byteUnits {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return "0B"
}
