package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
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

// The command of the next page can be pasted into a shell, and asks for the same as the one before.
func TestTheNextPageIsACommand(t *testing.T) {
	for want, given := range map[string][]string{
		"more: kit list --after 2026_a\n":                                                           nil,
		"more: kit list --config app.yaml --after 2026_a\n":                                         {"--config", "app.yaml"},
		"more: kit list --config 'it'\\''s here.yaml' --time-format iso --limit 7 --after 2026_a\n": {"--config", "it's here.yaml", "--time-format", "iso", "--limit", "7", "--after", "2025_a"},
	} {
		s := &Session{}
		root := newRoot(App{Name: "kit"}, s)
		var b strings.Builder
		var p page
		list := &cobra.Command{Use: "list", RunE: func(c *cobra.Command, _ []string) error { return p.next(&b, s, c, "2026_a") }}
		p.flags(list, 10)
		root.AddCommand(list)
		root.SetArgs(append([]string{"list"}, given...))
		require.NoError(t, root.Execute())
		require.Equal(t, want, b.String())
	}
	require.Equal(t, "''", shellWord(""))
	require.Equal(t, "'$(rm -r x)'", shellWord("$(rm -r x)"))
}
