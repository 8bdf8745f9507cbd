package config

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 90 * time.Second: "1m30s", 30 * time.Minute: "30m", 24 * time.Hour: "24h", time.Hour + time.Second: "1h0m1s", 90 * time.Minute: "1h30m", 250 * time.Millisecond: "250ms",
		10 * time.Minute: "10m", 10 * time.Hour: "10h",
	} {
		require.Equal(t, want, formatDuration(d))
	}
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]int64{"0B": 0, "1B": 1, "8KiB": 8192, "3MiB": 3145728, "2GiB": 2147483648, "8589934591GiB": 9223372035781033984, "9223372036854775807B": math.MaxInt64} {
		n, problem, _ := parseBytes(s)
		require.Empty(t, problem, s)
		require.Equal(t, want, n, s)
	}
}

// What is accepted has a unit, is not negative, and is shown as a text that means the same. What is refused comes with both sentences.
func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"10", "10s", "1h30m", "-1s", "0", "0s", "1d", "", " 1s", "9223372036854775807ns", "9999999h", "1e3s", ".5s", "+5s", "-0s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, problem, fix := parseDuration(s)
		require.Equal(t, problem == "", fix == "")
		if problem != "" {
			require.Zero(t, d)
			return
		}
		require.GreaterOrEqual(t, d, time.Duration(0))
		require.True(t, strings.ContainsAny(s, "smh"), "no unit")
		again, problem, _ := parseDuration(formatDuration(d))
		require.Empty(t, problem)
		require.Equal(t, d, again)
	})
}

func FuzzParseBytes(f *testing.F) {
	for _, s := range []string{"8", "8KiB", "8KB", "0B", "-1B", "9223372036854775807B", "9223372036854775808B", "8589934592GiB", "", "B", "1.5MiB", "٣B", "1 KiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, problem, fix := parseBytes(s)
		require.Equal(t, problem == "", fix == "")
		if problem != "" {
			require.Zero(t, n)
			return
		}
		require.GreaterOrEqual(t, n, int64(0))
		require.True(t, strings.HasSuffix(s, "B"), "no unit")
		again, problem, _ := parseBytes(formatBytes(n))
		require.Empty(t, problem)
		require.Equal(t, n, again)
	})
}

// No file makes Load panic, and a secret in it shows in no problem, whatever else is wrong around it.
func FuzzLoadFile(f *testing.F) {
	for _, s := range []string{"", "db:\n  max_conns: 5\n", "db:\n\turl: x\n", "a: &b [*b]\n", "? x\n: y\n", "db: {url: 'x", "--- \n...\n---\n", "<<: *a\n", "profile: |\n  dev\n", "%YAML 1.2\n---\nx", "-"} {
		f.Add(s)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, s string) {
		const canary = "postgres://canary-0123456789@h/d"
		if strings.Contains(s, "canary") {
			return
		}
		path := filepath.Join(dir, "app.yaml")
		require.NoError(t, os.WriteFile(path, []byte("db:\n  url: "+canary+"\n"+s), 0o600))
		c, err := Load(Source{File: path})
		if err == nil {
			require.True(t, strings.HasPrefix(c.DB.URL.Reveal(), canary), "a plain scalar may go on in the next line")
			return
		}
		var ps Problems
		require.ErrorAs(t, err, &ps)
		require.NotEmpty(t, ps)
		require.NotContains(t, err.Error(), "canary")
	})
}
