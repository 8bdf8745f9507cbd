// Command bench measures the kit beside what it stands on and beside its peers, in one run, on one server, and prints medians.
// "make bench" writes it to docs/benchmarks.md; "go run . -quick" in this directory tries it out in a minute, and -only picks what to measure.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"caskeleton.dev/adapter/postgres/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	quick := flag.Bool("quick", false, "measure less, to try it out: figures mean nothing")
	only := flag.String("only", "", "measure only what has this text in its name")
	flag.Parse()
	s := full
	if *quick {
		s = small
	}
	s.only = *only
	if err := run(ctx, os.Stdout, s); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// sizes say how much is measured.
type sizes struct {
	only          string // part of a name; "" for all
	rounds        int    // of pairs
	drains        []int  // events
	drainRounds   int
	deep, shallow int // lanes
	claims        int // a depth
	seconds       int // of the latency
	handOvers     int // of a lock
}

var (
	full  = sizes{rounds: 30, drains: []int{100_000, 1_000_000}, drainRounds: 3, deep: 1_000_000, shallow: 10_000, claims: 200, seconds: 5, handOvers: 100}
	small = sizes{rounds: 3, drains: []int{20_000, 100_000}, drainRounds: 3, deep: 100_000, shallow: 10_000, claims: 50, seconds: 2, handOvers: 10}
)

func run(ctx context.Context, out io.Writer, s sizes) (err error) {
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
	rep := report{version: version, rounds: s.rounds}
	rep.durable, err = f.durability(ctx)
	if err != nil {
		return err
	}
	claims, closing, err := f.claims(ctx, s)
	if err != nil {
		return err
	}
	defer closing()
	if rep.pairs, err = s.measure(ctx, append(f.pairs(s.rounds), claims)); err != nil {
		return err
	}
	if rep.drains, err = s.measure(ctx, f.drains(s)); err != nil {
		return err
	}
	if strings.Contains("latency", s.only) {
		_, _ = fmt.Fprintln(os.Stderr, "measuring: latency")
		if rep.latency, err = f.latency(ctx, s.seconds); err != nil {
			return err
		}
	}
	if strings.Contains("locking", s.only) {
		if rep.locking, err = f.locking(ctx, sizes{rounds: s.rounds, handOvers: s.handOvers}); err != nil {
			return err
		}
	}
	rep.write(out)
	return nil
}

func (s sizes) measure(ctx context.Context, all []comparison) (results []result, err error) {
	for _, c := range all {
		if !strings.Contains(c.name, s.only) {
			continue
		}
		_, _ = fmt.Fprintf(os.Stderr, "measuring: %s\n", c.name)
		r, err := c.measure(ctx)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
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
	s, err := embedded.Start(ctx, embedded.Options{
		DataDir:  filepath.Join(dir, "postgres"),
		Settings: map[string]string{"shared_buffers": "1GB", "max_wal_size": "4GB"}, // a million events fit, and no checkpoint meets one side alone
	})
	if err != nil {
		return "", "", nil, err
	}
	return s.DSN(), s.Version(), func() {
		_ = s.Stop(context.WithoutCancel(ctx))
		_ = os.RemoveAll(dir)
	}, nil
}
