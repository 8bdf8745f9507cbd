package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawn is a field as it was written, and the values that it means.
type drawn struct {
	text   string
	values map[int]bool
}

// drawField writes a field of a crontab line, and says what it means by counting.
func drawField(t *rapid.T, name string, low, high int, names []string) drawn {
	d := drawn{values: map[int]bool{}}
	var parts []string
	spell := func(n int) string {
		if n-low < len(names) && rapid.Bool().Draw(t, name+" by name") {
			return names[n-low]
		}
		return fmt.Sprint(n)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, name+" parts") {
		from, to, step := low, high, 1
		text := "*"
		kind := rapid.SampledFrom([]string{"all", "one", "range"}).Draw(t, name+" kind")
		if i > 0 && kind == "all" {
			kind = "one"
		}
		switch kind {
		case "one":
			from = rapid.IntRange(low, high).Draw(t, name)
			to, text = from, spell(from)
		case "range":
			from = rapid.IntRange(low, high).Draw(t, name+" from")
			to = rapid.IntRange(from, high).Draw(t, name+" to")
			text = spell(from) + "-" + spell(to)
		}
		if kind != "one" && rapid.Bool().Draw(t, name+" stepped") {
			step = rapid.IntRange(1, max(high, 1)).Draw(t, name+" step")
			text += fmt.Sprint("/", step)
		}
		for n := low; n <= high; n++ {
			if n >= from && n <= to && (n-from)%step == 0 {
				d.values[n] = true
			}
		}
		parts = append(parts, text)
	}
	d.text = strings.Join(parts, ",")
	return d
}

// TestCronAgreesWithCounting compares with a look at each minute, one after the other.
func TestCronAgreesWithCounting(t *testing.T) {
	months := strings.Fields("JAN feb Mar APR MAY JUN JUL AUG SEP OCT NOV dec")
	days := strings.Fields("SUN mon Tue WED THU FRI sat")
	rapid.Check(t, func(t *rapid.T) {
		minute, hour := drawField(t, "minute", 0, 59, nil), drawField(t, "hour", 0, 23, nil)
		day, month, weekday := drawField(t, "day", 1, 31, nil), drawField(t, "month", 1, 12, months), drawField(t, "weekday", 0, 7, days)
		due := func(at time.Time) bool {
			inMonth, inWeek := day.values[at.Day()], weekday.values[int(at.Weekday())] || at.Weekday() == time.Sunday && weekday.values[7]
			days := inMonth || inWeek
			if strings.HasPrefix(day.text, "*") || strings.HasPrefix(weekday.text, "*") {
				days = inMonth && inWeek
			}
			return minute.values[at.Minute()] && hour.values[at.Hour()] && month.values[int(at.Month())] && days
		}
		spec := strings.Join([]string{minute.text, hour.text, day.text, month.text, weekday.text}, " ")
		c := Cron(spec)
		if c.Validate() != nil {
			return // such as each 31st of February: TestCronRefusesWhatNeverComes
		}
		const span = 40 * 24 * 60 // minutes
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "time"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		next, last := at.UTC().Truncate(time.Minute).Add(time.Minute), at.UTC().Truncate(time.Minute)
		for range span {
			if due(next) {
				break
			}
			next = next.Add(time.Minute)
		}
		for range span {
			if due(last) {
				break
			}
			last = last.Add(-time.Minute)
		}
		if due(next) {
			require.Equal(t, next, c.Next(at), spec)
		} else {
			require.True(t, c.Next(at).After(next), spec)
		}
		if due(last) {
			require.Equal(t, last, c.Last(at), spec)
		} else {
			require.True(t, c.Last(at).Before(last), spec)
		}
	})
}

func TestCronInWords(t *testing.T) {
	at := time.Date(2026, time.February, 11, 10, 7, 30, 0, time.UTC) // a Wednesday
	for spec, want := range map[string][]string{
		"*/5 * * * *":         {"2026-02-11 10:10", "2026-02-11 10:15"},
		"0 0 * * *":           {"2026-02-12 00:00", "2026-02-13 00:00"},
		"30 9 * * MON-FRI":    {"2026-02-12 09:30", "2026-02-13 09:30", "2026-02-16 09:30"},
		"0 12 * * 7":          {"2026-02-15 12:00", "2026-02-22 12:00"},
		"0 0 13 * FRI":        {"2026-02-13 00:00", "2026-02-20 00:00", "2026-02-27 00:00", "2026-03-06 00:00", "2026-03-13 00:00"},
		"0 0 1-7 * fri":       {"2026-02-13 00:00", "2026-02-20 00:00", "2026-02-27 00:00", "2026-03-01 00:00", "2026-03-02 00:00"}, // not the first Friday
		"0 0 */2 * FRI":       {"2026-02-13 00:00", "2026-02-27 00:00", "2026-03-13 00:00"},                                         // an odd day and a Friday
		"0 0 29 2 *":          {"2028-02-29 00:00", "2032-02-29 00:00"},
		"59 23 31 12 *":       {"2026-12-31 23:59", "2027-12-31 23:59"},
		"  0,30\t10 * FEB * ": {"2026-02-11 10:30", "2026-02-12 10:00"},
	} {
		c, from := Cron(spec), at
		require.NoError(t, c.Validate(), spec)
		var got []string
		for range want {
			from = c.Next(from)
			got = append(got, from.Format("2006-01-02 15:04"))
		}
		require.Equal(t, want, got, spec)
		for i := range slices.Backward(want) {
			require.Equal(t, want[i], c.Last(from).Format("2006-01-02 15:04"), spec)
			from = c.Last(from).Add(-time.Nanosecond)
		}
	}
	elsewhere := at.In(time.FixedZone("", 5*60*60+1800))
	require.Equal(t, Cron("0 0 * * *").Next(at), Cron("0 0 * * *").Next(elsewhere), "a zone changes nothing")
}

func TestCronSaysWhatIsWrong(t *testing.T) {
	for spec, want := range map[string]string{
		"":                    "has 0 fields; write five",
		"* * * *":             "has 4 fields; write five",
		"0 0 1 1 * *":         "has 6 fields; write five",
		"@hourly":             "has 1 fields; write five",
		"60 * * * *":          `minute "60" has "60" in it; write a number from 0 to 59`,
		"* 24 * * *":          `hour "24" has "24" in it; write a number from 0 to 23`,
		"* * 0 * *":           `day of the month "0" has "0" in it; write a number from 1 to 31`,
		"* * * 13 *":          `month "13" has "13" in it; write a number from 1 to 12 or a name like JAN`,
		"* * * * 8":           `day of the week "8" has "8" in it; write a number from 0 to 7 or a name like SUN`,
		"* * * NOPE *":        `month "NOPE" has "NOPE" in it`,
		"* * * ANF *":         `month "ANF" has "ANF" in it`,
		"* * * * FRIDAY":      `has "FRIDAY" in it`,
		"MON * * * *":         `minute "MON" has "MON" in it`,
		"-1 * * * *":          `has "" in it`,
		"+1 * * * *":          `has "+1" in it`,
		"1,,2 * * * *":        `has "" in it`,
		"1-2-3 * * * *":       `has "2-3" in it`,
		"*/0 * * * *":         `has the step "0"; write a number from 1 to 59, as in */5`,
		"*/60 * * * *":        `has the step "60"`,
		"*/ * * * *":          `has the step ""`,
		"*/5/5 * * * *":       `has the step "5/5"`,
		"5/10 * * * *":        "has a step and no range; write 5-59/ in place of 5/",
		"50-10 * * * *":       "ends before it begins; write two, 50-59,0-10",
		"* * * * FRI-SUN":     "ends before it begins; write two, FRI-7,0-SUN",
		"*-5 * * * *":         `has "*" in it`,
		"? * * * *":           `has "?" in it`,
		"99999999999 * * * *": `has "99999999999" in it`,
		"0 0 31 2 *":          "no day is ever like that",
		"0 0 30-31 FEB *":     "no day is ever like that",
		"0 0 31 4,6,9,11 *":   "no day is ever like that",
	} {
		err := Cron(spec).Validate()
		require.ErrorContains(t, err, want, spec)
		require.ErrorContains(t, err, fmt.Sprintf("Cron(%q)", spec))
	}
}

func TestEveryIsAlignedToTheEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(10_000, 1e12).Draw(t, "us")) * time.Microsecond
		at := time.Unix(rapid.Int64Range(-1e9, 4e9).Draw(t, "time"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		e := Every(d)
		require.NoError(t, e.Validate())
		last, next := e.Last(at), e.Next(at)
		require.False(t, last.After(at))
		require.True(t, next.After(at))
		require.Equal(t, d, next.Sub(last))
		require.Zero(t, last.Sub(time.Unix(0, 0))%d)
		require.Equal(t, last, e.Last(last), "a slot is its own last")
		require.Equal(t, next, e.Next(last))
	})
	for _, d := range []time.Duration{0, -time.Hour, time.Millisecond, time.Second + time.Nanosecond} {
		require.ErrorContains(t, Every(d).Validate(), "Every("+d.String()+")")
	}
}
