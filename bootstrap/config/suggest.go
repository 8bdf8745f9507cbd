package config

import "strings"

// suggest returns the documented name nearest to one that is not known, and "" where none is near. part picks the spelling.
func suggest(name string, part func(Key) string) string {
	best, distance := "", max(2, len(strings.TrimPrefix(name, "APP_"))/3)+1
	try := func(candidate string) {
		if d := levenshtein(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	for _, k := range keys {
		if !k.Pattern {
			try(part(k))
			continue
		}
		before, after := around(part(k))
		if arg, ok := strings.CutPrefix(name, before); ok && after == "" && !validArg(arg) {
			return part(k) // all but the placeholder is right
		}
		for _, arg := range strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '.' }) {
			if validArg(arg) && !strings.Contains(before+after, arg) {
				try(part(k.fill(arg)))
			}
		}
	}
	return best
}

// levenshtein counts the letters to add, drop or change to get from a to b.
func levenshtein(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
