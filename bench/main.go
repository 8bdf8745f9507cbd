// Command bench measures the kit beside what it stands on and beside its peers, in one run, on one server, and prints a table of medians.
// "make bench" writes that table to docs/benchmarks.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"caskeleton.dev/adapter/postgres/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	dsn, version, stop, err := server(ctx)
	if err != nil {
		return err
	}
	defer stop()
	f, err := newFixture(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = f.close(context.WithoutCancel(ctx)) }()
	var results []result
	for _, c := range f.comparisons() {
		_, _ = fmt.Fprintf(os.Stderr, "measuring: %s\n", c.name)
		r, err := c.measure(ctx)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	var durable string
	if err := f.bare.QueryRow(ctx, `select 'fsync ' || current_setting('fsync') || ', synchronous_commit ' || current_setting('synchronous_commit')`).Scan(&durable); err != nil {
		return err
	}
	render(out, results, version, durable)
	return nil
}

// server returns DATABASE_URL, or an embedded server of its own, with fsync on.
func server(ctx context.Context) (dsn, version string, stop func(), err error) {
	if dsn := os.Getenv("DATABASE_URL"); dsn != "" {
		return dsn, "DATABASE_URL", func() {}, nil
	}
	dir, err := os.MkdirTemp("", "caskeleton-bench-")
	if err != nil {
		return "", "", nil, err
	}
	s, err := embedded.Start(ctx, embedded.Options{DataDir: filepath.Join(dir, "postgres")})
	if err != nil {
		return "", "", nil, err
	}
	return s.DSN(), s.Version(), func() {
		_ = s.Stop(context.WithoutCancel(ctx))
		_ = os.RemoveAll(dir)
	}, nil
}

func render(w io.Writer, results []result, version, durable string) {
	p := func(format string, a ...any) { _, _ = fmt.Fprintf(w, format+"\n", a...) }
	p("# Benchmarks\n")
	p("Written by `make bench`; do not edit. The kit and the other side take turns, round by round, over one server and pools of one size;")
	p("each figure is the median over %d rounds, and the ratio is the median of the rounds' ratios. Absolute times are this machine's.\n", results[0].rounds)
	p("- date: %s", time.Now().UTC().Format(time.DateOnly))
	p("- machine: %s/%s, %d CPUs%s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpuModel())
	p("- %s, pgx %s, PostgreSQL %s over loopback TCP, %s\n", runtime.Version(), moduleVersion("github.com/jackc/pgx/v5"), version, durable)
	p("| what | kit | time, allocations | beside | time, allocations | ratio | target |")
	p("|---|---|---|---|---|---|---|")
	for _, r := range results {
		ratio, other, name := "-", "-", "-"
		if r.ratio > 0 {
			ratio, other, name = fmt.Sprintf("%.2f", r.ratio), r.otherCost.String(), "`"+r.other.name+"`"
		}
		p("| %s | `%s` | %s | %s | %s | %s | %s |", r.name, r.kit.name, r.kitCost, name, other, ratio, r.target)
	}
}

func (c cost) String() string { return fmt.Sprintf("%s, %.0f", duration(c.time), c.allocs) }

func duration(d time.Duration) string {
	if d < 10*time.Microsecond {
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	}
	return fmt.Sprintf("%d µs", d.Microseconds())
}

func cpuModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(info)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return ", " + strings.TrimLeft(strings.TrimSpace(name), ": ")
		}
	}
	return ""
}

func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
}
