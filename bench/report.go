package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// report is all that was measured in one run.
type report struct {
	version, durable string
	rounds           int // of the pairs
	pairs, drains    []result
	latency          latency
	locking          locking
}

func (r report) write(w io.Writer) {
	p := func(format string, a ...any) { _, _ = fmt.Fprintf(w, format+"\n", a...) }
	p("# Benchmarks\n")
	p("Written by `make bench`; do not edit. The kit and the other side take turns, round by round, over one server and pools of one size;")
	p("each figure is the median over %d rounds or, of claims and drains, over those it names, and the ratio is the median of the rounds' ratios.", r.rounds)
	p("Absolute times are this machine's.\n")
	p("- date: %s", time.Now().UTC().Format(time.DateOnly))
	p("- machine: %s/%s, %d CPUs%s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpuModel())
	p("- %s, pgx %s, PostgreSQL %s over loopback TCP, %s\n", runtime.Version(), moduleVersion("github.com/jackc/pgx/v5"), r.version, r.durable)
	writePairs(p, r.pairs)
	p("\n## Delivering\n")
	p("The table of envelopes has %d partitions; the publisher does nothing. Beside a drain stand the statements of the relay, bare: one loop over", partitions)
	p("pgx without epochs, holds, failures, doorbell, metrics or decoded headers, on the same backlog. Latency is from the return of COMMIT to the")
	p("call of the publisher, one event a transaction, by a relay with a doorbell in the same process.\n")
	p("| what | kit | bare | kit / bare | target |")
	p("|---|---|---|---|---|")
	for _, r := range r.drains {
		p("| %s (%d rounds) | %s | %s | %.0f %% | %s |", r.name, r.rounds, r.kitCost.rate(), r.otherCost.rate(), 100/r.ratio, r.target)
	}
	if l := r.latency; l.rate > 0 {
		p("| commit to publish at %.0f events/s, p50 | %.1f ms | - | - | <= 5 ms |", l.rate, l.p50.Seconds()*1000)
		p("| commit to publish at %.0f events/s, p99 | %.1f ms | - | - | <= 50 ms |", l.rate, l.p99.Seconds()*1000)
	}
	r.locking.write(p)
}

func writePairs(p func(format string, a ...any), pairs []result) {
	p("| what | kit | time, allocations | beside | time, allocations | ratio | target |")
	p("|---|---|---|---|---|---|---|")
	for _, r := range pairs {
		ratio, other, name := "-", "-", "-"
		if r.ratio > 0 {
			ratio, other, name = fmt.Sprintf("%.2f", r.ratio), r.otherCost.String(), "`"+r.other.name+"`"
		}
		p("| %s | `%s` | %s | %s | %s | %s | %s |", r.name, r.kit.name, r.kitCost, name, other, ratio, r.target)
	}
}

// rate is of operations in a second.
func (c cost) rate() string { return thousands(int(time.Second/c.time)) + "/s" }

// thousands writes n in groups of three digits.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
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
