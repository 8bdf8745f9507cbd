package pgoutbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// ledger is what was committed, by lane and sequence, and what was published, in order.
type ledger struct {
	mu        sync.Mutex
	committed map[outbox.Lane][]string
	published map[outbox.Lane][]string

	appended, rolledBack, refused, abandoned, lost, empty atomic.Int64
}

var errRollback = errors.New("roll back")

// TestNothingIsLostOrDisordered runs writers at every isolation that roll back, dawdle and spread one call over several aggregates, beside
// relays that die between claim and publish, or between publish and settlement, give back, fail, acknowledge in part, and time out.
func TestNothingIsLostOrDisordered(t *testing.T) {
	f := newFixture(t, "")
	l := &ledger{committed: map[outbox.Lane][]string{}, published: map[outbox.Lane][]string{}}
	const writers, relays, perWriter = 6, 3, 150
	var writing, relaying sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for w := range writers {
		writing.Go(func() { f.write(t, l, w, perWriter) })
	}
	for r := range relays {
		relaying.Go(func() { f.relay(ctx, t, l, r) })
	}
	writing.Wait()
	require.Eventually(t, func() bool { return get[int](t, f, `select count(*) from caskeleton.outbox_lane`) == 0 }, time.Minute, 20*time.Millisecond)
	stop()
	relaying.Wait()

	f.invariant(t)
	for lane, want := range l.committed {
		require.Equal(t, want, firsts(l.published[lane]), "%v", lane)
	}
	require.Len(t, l.published, len(l.committed))
	t.Logf("appended %d, rolled back %d, refused %d, abandoned %d, lost %d, empty %d", l.appended.Load(), l.rolledBack.Load(), l.refused.Load(),
		l.abandoned.Load(), l.lost.Load(), l.empty.Load())
	for name, n := range map[string]*atomic.Int64{
		"appended": &l.appended, "rolled back": &l.rolledBack, "refused": &l.refused, "abandoned": &l.abandoned, "lost": &l.lost, "empty": &l.empty,
	} {
		require.Positive(t, n.Load(), "%s: it never happened, so it was not tried", name)
	}
}

// firsts leaves out what was published before: delivery is at least once.
func firsts(all []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

func (f *fixture) write(t *testing.T, l *ledger, writer, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(writer), 1))
	levels := []tx.Isolation{tx.ReadCommitted, tx.ReadCommitted, tx.RepeatableRead, tx.Serializable}
	for i := range n {
		var events []outbox.Event
		for j := range 1 + r.IntN(4) {
			events = append(events, event(fmt.Sprint("a", r.IntN(12)), fmt.Sprintf("%d-%d-%d", writer, i, j)))
		}
		err := f.runner.With(tx.Options{Isolation: levels[r.IntN(len(levels))]}).InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			if err := f.outbox.Append(ctx, tr, events...); err != nil {
				return err
			}
			q, err := postgres.Querier(tr)
			if err != nil {
				return err
			}
			if r.IntN(10) == 0 {
				if _, err := q.Exec(ctx, `select pg_sleep($1)`, float64(r.IntN(40))/1000); err != nil {
					return err
				}
			}
			if r.IntN(10) == 0 {
				return errRollback
			}
			// What was given to these events is what must be published: the counter is ours until the commit.
			enter, err := l.note(ctx, q, events)
			if err != nil {
				return err
			}
			return tr.AfterCommit(enter)
		})
		switch {
		case err == nil:
			l.appended.Add(int64(len(events)))
		case errors.Is(err, errRollback):
			l.rolledBack.Add(1)
		case fault.Retryable(err):
			l.refused.Add(1)
		default:
			t.Errorf("append: %v", err)
			return
		}
	}
}

// note reads the sequences of events and returns a hook that enters them.
func (l *ledger) note(ctx context.Context, q postgres.DBTX, events []outbox.Event) (func(context.Context) error, error) {
	last := map[outbox.Lane]int64{}
	for _, e := range events {
		var n int64
		if err := q.QueryRow(ctx, `select last_sequence from caskeleton.outbox_counter where aggregatetype = $1 and aggregateid = $2`,
			e.AggregateType, e.AggregateID).Scan(&n); err != nil {
			return nil, err // SERIALIZABLE may refuse a read as well
		}
		last[e.Lane()] = n
	}
	return func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, e := range slices.Backward(events) {
			lane, n := e.Lane(), last[e.Lane()]
			for int64(len(l.committed[lane])) < n {
				l.committed[lane] = append(l.committed[lane], "")
			}
			l.committed[lane][n-1] = string(e.Payload)
			last[lane]--
		}
		return nil
	}, nil
}

func (f *fixture) relay(ctx context.Context, t *testing.T, l *ledger, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), 2))
	owner := fmt.Sprint("relay-", n)
	var rung []outbox.Lane
	for ctx.Err() == nil {
		claims, err := f.driver.Claim(ctx, outbox.ClaimRequest{Owner: owner, Limit: 1 + r.IntN(6), RunSize: 1 + r.IntN(5), Lease: 60 * time.Millisecond, Rung: rung})
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("claim: %v", err)
			}
			return
		}
		rung = nil
		if len(claims) == 0 {
			select {
			case <-f.outbox.Bell().C():
				rung = f.outbox.Bell().Drain()
			case <-time.After(2 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		settlements := l.publish(r, claims)
		if r.IntN(30) == 0 { // longer than the lease
			_, _ = f.db.Exec(ctx, `select pg_sleep(0.08)`)
		}
		lost, err := f.driver.Settle(ctx, settlements)
		if err != nil && ctx.Err() == nil {
			t.Errorf("settle: %v", err)
		}
		l.lost.Add(int64(len(lost)))
	}
}

// publish delivers runs, and returns what the relay that did so would settle.
func (l *ledger) publish(r *rand.Rand, claims []outbox.Claim) []outbox.Settlement {
	var settlements []outbox.Settlement
	for _, c := range claims {
		s := outbox.Settlement{Claim: c, Acked: len(c.Run)}
		switch {
		case len(c.Run) == 0:
			l.empty.Add(1)
		case r.IntN(25) == 0: // it dies before it publishes
			l.abandoned.Add(1)
			continue
		case r.IntN(10) == 0:
			s.Acked = r.IntN(len(c.Run) + 1)
			s.GiveBack = true
		case r.IntN(10) == 0:
			s.Acked = r.IntN(len(c.Run))
			s.Failure, s.Retry = "no", time.Duration(r.IntN(20))*time.Millisecond
		}
		l.mu.Lock()
		for _, e := range c.Run[:s.Acked] {
			l.published[c.Lane] = append(l.published[c.Lane], string(e.Payload))
		}
		l.mu.Unlock()
		if r.IntN(25) == 0 { // it dies after it published: duplicates follow
			l.abandoned.Add(1)
			continue
		}
		settlements = append(settlements, s)
	}
	return settlements
}
