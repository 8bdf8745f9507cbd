package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTableQuotesWhatDrivesATerminal(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Table(&b, []string{"A", "B"}, [][]string{{"\x1b[31mred", "x"}, {"two\nlines", ""}, {"żółw", "y"}}))
	want := []string{
		`A              B`,
		`"\x1b[31mred"  x`,
		`"two\nlines"   -`,
		`żółw           y`,
	}
	require.Equal(t, strings.Join(want, "\n")+"\n", b.String())
}

func TestTime(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := &Session{now: func() time.Time { return now }}
	for ago, want := range map[time.Duration]string{
		0: "0s ago", 59 * time.Second: "59s ago", time.Minute: "1m ago", 59 * time.Minute: "59m ago", time.Hour: "1h ago", 47 * time.Hour: "47h ago", 48 * time.Hour: "2d ago", -90 * time.Second: "in 1m",
	} {
		require.Equal(t, want, s.Time(now.Add(-ago)))
	}
	require.Empty(t, s.Time(time.Time{}))
	s.times.value = "iso"
	require.Equal(t, "2026-01-02T03:04:05Z", s.Time(now.In(time.FixedZone("", 3600))))
}
