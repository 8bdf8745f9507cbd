package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// locking is what was measured of locks.
type locking struct {
	redis      string // version
	pairs      []result
	handOvers  []handOver
	statements float64 // a hand-over, with waiters
}

// handOver is how long a waiter waited after a release, sorted.
type handOver struct {
	name, target string
	all          []time.Duration
}

func (f *fixture) locking(ctx context.Context, s sizes) (l locking, err error) {
	server, err := startRedis(ctx)
	if err != nil {
		return l, err
	}
	defer server.stop()
	l.redis = server.version
	byRedis, err := newRedisLocks(ctx, server.addr)
	if err != nil {
		return l, err
	}
	defer byRedis.close()
	byPG, err := f.locks(ctx)
	if err != nil {
		return l, err
	}
	defer byPG.close(context.WithoutCancel(ctx))

	const goroutines, cycles = 16, 16 * 500
	kit := side{byRedis.kit.name, byRedis.kit.cycles(goroutines)}
	all := []comparison{
		{
			name: "lock and unlock, PostgreSQL", target: "<= 1.3x",
			kit: side{byPG.polled.name, byPG.polled.cycles(1)}, other: side{byPG.statements.name, byPG.statements.cycles(1)}, n: 300, rounds: s.rounds,
		},
		{
			name: "lock and unlock, Redis, 16 goroutines", target: "<= 1.18x (0.85 of its rate)",
			kit: kit, other: side{byRedis.bare.name, byRedis.bare.cycles(goroutines)}, n: cycles, rounds: s.rounds,
		},
	}
	for _, p := range byRedis.peers {
		all = append(all, comparison{
			name: "lock and unlock, Redis, 16 goroutines", target: "< 1x", kit: kit, other: side{p.name, p.cycles(goroutines)}, n: cycles, rounds: s.rounds,
		})
	}
	if l.pairs, err = s.measure(ctx, all); err != nil {
		return l, err
	}
	for _, h := range []struct {
		mutex
		target string
	}{
		{byPG.hinted, "p50 <= 2 ms"},
		{byPG.notify, "-"},
		{byPG.advisory, "-"},
		{byPG.polled, "p50 <= 50 ms, half of its poll"},
		{byPG.polling, "-"},
		{byRedis.kit, "-"},
		{byRedis.peers[0], "-"},
		{byRedis.peers[1], "-"},
		{byRedis.peers[2], "-"},
	} {
		_, _ = fmt.Fprintf(os.Stderr, "measuring: hand-over, %s\n", h.name)
		all, err := h.handOvers(ctx, s.handOvers)
		if err != nil {
			return l, fmt.Errorf("hand-over, %s: %w", h.name, err)
		}
		l.handOvers = append(l.handOvers, handOver{h.name, h.target, all})
	}
	l.statements, err = byPG.contention(ctx)
	return l, err
}

// steps are the upper ends of the histogram's columns; what is slower has a column of its own.
func steps() []time.Duration {
	return []time.Duration{500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}
}

func (l locking) write(p func(format string, a ...any)) {
	if len(l.handOvers) == 0 {
		return
	}
	p("\n## Locking\n")
	p("PostgreSQL as above; Redis %s on the same machine over loopback, without persistence. Each goroutine has a key of its own.\n", l.redis)
	writePairs(p, l.pairs)
	p("\n%d waiters on one key, in two nodes: %.1f statements of the kit a hand-over (target: <= 20).\n", waiters, l.statements)
	p("Hand-over is the time from the call that unlocks in one node to the return of the call that waited in another, which began to wait 50 to 250 ms")
	p("before. The columns count how many of %d took up to so long.\n", len(l.handOvers[0].all))
	head, line := "| waiter | p50 | p99 |", "|---|---|---|"
	for _, s := range steps() {
		head, line = head+fmt.Sprintf(" <= %g ms |", s.Seconds()*1000), line+"---|"
	}
	p("%s more | target |", head)
	p("%s---|---|", line)
	for _, h := range l.handOvers {
		row := fmt.Sprintf("| %s | %.1f ms | %.1f ms |", h.name, h.all[len(h.all)/2].Seconds()*1000, h.all[len(h.all)*99/100].Seconds()*1000)
		from := 0
		for _, s := range steps() {
			to := from
			for to < len(h.all) && h.all[to] <= s {
				to++
			}
			row, from = row+fmt.Sprintf(" %d |", to-from), to
		}
		p("%s %d | %s |", row, len(h.all)-from, h.target)
	}
}
