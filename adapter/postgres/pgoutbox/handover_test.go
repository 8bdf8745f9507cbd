package pgoutbox_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// handover is what was committed and what was delivered, by either relay, in order.
type handover struct {
	mu                   sync.Mutex
	committed, delivered map[outbox.Lane][]string
	byKit, byLegacy      int
}

func (h *handover) note(m map[outbox.Lane][]string, l outbox.Lane, payload string) {
	m[l] = append(m[l], payload)
}

// TestWritersOfBothKindsDuringTheChange: old and new instances record events, and their relays deliver them, while the authority changes.
// Each writer has aggregates of its own, so that the order of their commits is known.
func TestWritersOfBothKindsDuringTheChange(t *testing.T) {
	t.Parallel()
	f := adopting(t, "")
	f.yield(t)
	h := &handover{committed: map[outbox.Lane][]string{}, delivered: map[outbox.Lane][]string{}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const writers, before, after = 12, 40, 40
	half, flipped := make(chan struct{}, writers), make(chan struct{})
	refused := make(chan struct{}, writers)
	var writing, relaying sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			old := w%2 == 0
			for i, left := 0, after; left > 0; i++ {
				if i == before {
					half <- struct{}{}
				}
				select {
				case <-flipped:
					left--
				default:
				}
				e := withID(event(fmt.Sprint("a", w, "-", i%3), fmt.Sprint(i)))
				var err error
				if old || i%5 == 0 { // new instances beside old ones, in one aggregate
					if err = legacyAppend(ctx, f.db, e); err != nil {
						if !strings.Contains(err.Error(), "55000") {
							t.Errorf("an old instance failed with %v", err)
						}
						if old {
							refused <- struct{}{}
						}
						old = false // it is replaced
						err = f.append(ctx, e)
					}
				} else {
					err = f.append(ctx, e)
				}
				if err != nil {
					t.Errorf("append: %v", err)
					return
				}
				h.mu.Lock()
				h.note(h.committed, e.Lane(), string(e.Payload))
				h.mu.Unlock()
			}
		})
	}
	relaying.Go(func() { f.legacyRelay(ctx, t, h) })
	relaying.Go(func() { f.kitRelay(ctx, t, h) })
	for range writers {
		<-half
	}
	h.mu.Lock()
	require.Zero(t, h.byKit, "the kit delivers nothing before")
	h.mu.Unlock()
	taken, err := pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadUndecided)
	require.NoError(t, err)
	close(flipped)
	writing.Wait()
	require.Eventually(t, func() bool { return get[int](t, f, `select count(*) from caskeleton.outbox_lane`) == 0 }, time.Minute, 20*time.Millisecond)
	stop()
	relaying.Wait()

	f.invariant(t)
	require.Len(t, h.delivered, len(h.committed))
	for l, want := range h.committed {
		require.Equal(t, want, firsts(h.delivered[l]), "%v", l)
	}
	require.Len(t, refused, writers/2, "each old instance was told")
	require.Positive(t, taken.Copied)
	require.Positive(t, h.byLegacy)
	require.Positive(t, h.byKit)
}

// legacyRelay claims, publishes and marks, as the Java skeleton's does, until the trigger stops it.
func (f *fixture) legacyRelay(ctx context.Context, t *testing.T, h *handover) {
	t.Helper()
	for ctx.Err() == nil {
		rows, err := f.db.Query(ctx, `update legacy.outbox_event o set status = 'IN_FLIGHT', attempt_count = attempt_count + 1
			from (select id from legacy.outbox_event where status = 'PENDING' order by occurred_at, id limit 10 for update skip locked) c
			where o.id = c.id returning o.aggregate_type, o.aggregate_id, o.payload, o.id::text, o.occurred_at`)
		type row struct {
			AggregateType, AggregateID, Payload, ID string
			At                                      time.Time
		}
		var claimed []row
		if err == nil {
			claimed, err = pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		}
		if err != nil {
			if !strings.Contains(err.Error(), "55000") && ctx.Err() == nil {
				t.Errorf("the legacy relay failed with %v", err)
			}
			return
		}
		slices.SortFunc(claimed, func(a, b row) int { return a.At.Compare(b.At) })
		h.mu.Lock()
		for _, r := range claimed {
			h.note(h.delivered, outbox.Lane{AggregateType: r.AggregateType, AggregateID: r.AggregateID}, r.Payload)
			h.byLegacy++
		}
		h.mu.Unlock()
		for _, r := range claimed {
			if _, err := f.db.Exec(ctx, `update legacy.outbox_event set status = 'PUBLISHED' where id = $1::uuid`, r.ID); err != nil {
				break // the next claim says why
			}
		}
	}
}

// kitRelay claims and settles as fast as it can.
func (f *fixture) kitRelay(ctx context.Context, t *testing.T, h *handover) {
	t.Helper()
	for ctx.Err() == nil {
		claims, err := f.driver.Claim(ctx, outbox.ClaimRequest{Owner: "kit", Limit: 50, RunSize: 20, Lease: time.Minute})
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("claim: %v", err)
			}
			return
		}
		var settled []outbox.Settlement
		h.mu.Lock()
		for _, c := range claims {
			for _, e := range c.Run {
				h.note(h.delivered, c.Lane, string(e.Payload))
				h.byKit++
			}
			settled = append(settled, outbox.Settlement{Claim: c, Acked: len(c.Run)})
		}
		h.mu.Unlock()
		if _, err := f.driver.Settle(context.WithoutCancel(ctx), settled); err != nil {
			t.Errorf("settle: %v", err)
			return
		}
	}
}

// TestAChangeCutAnywhereIsWholeOrNotAtAll, and can be asked for again.
func TestAChangeCutAnywhereIsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	for mode, name := range map[proxytest.Mode]string{proxytest.Before: "before", proxytest.OnAnswer: "on answer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := adopting(t, "")
			f.yield(t)
			const n = 3
			for i := range n {
				require.NoError(t, legacyAppend(t.Context(), f.db, withID(event("a", fmt.Sprint(i)))))
			}
			proxy := proxytest.New(t, f.dsn)
			cuts := 0
			for {
				fault := proxy.BreakAt(mode, cuts+1)
				_, err := pgoutbox.TakeAuthority(t.Context(), proxy.DSN(), pgoutbox.DeadUndecided)
				if err == nil {
					break
				}
				<-fault.Struck()
				cuts++
				require.Eventually(t, func() bool {
					return get[int](t, f, `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'caskeleton-authority'`) == 0
				}, time.Minute, time.Millisecond)
				a, err := pgoutbox.ReadAuthority(t.Context(), f.dsn)
				require.NoError(t, err)
				copied := get[int](t, f, `select count(*) from caskeleton.outbox_event`)
				if a.Version == "v2" {
					require.Equal(t, n, copied)
					require.ErrorContains(t, legacyAppend(t.Context(), f.db, withID(event("b", "x"))), "55000")
					continue
				}
				require.Zero(t, copied)
				_, err = f.db.Exec(t.Context(), `update legacy.outbox_event set attempt_count = attempt_count`)
				require.NoError(t, err, "the old instances go on")
			}
			require.Greater(t, cuts, 5, "fewer statements than the change has")
			require.Equal(t, n, get[int](t, f, `select count(*) from caskeleton.outbox_event`))
		})
	}
}

// TestASnapshotFromBeforeTheChangeFails, and may be tried again: it must not record in the outbox that has no relay any more.
func TestASnapshotFromBeforeTheChangeFails(t *testing.T) {
	t.Parallel()
	f := adopting(t, "")
	f.yield(t)
	err := f.runner.With(tx.Options{Isolation: tx.RepeatableRead}).InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		q, err := postgres.Querier(tr)
		require.NoError(t, err)
		_, err = q.Exec(ctx, `select authority from caskeleton.outbox_control`)
		require.NoError(t, err)
		_, err = pgoutbox.TakeAuthority(ctx, f.dsn, pgoutbox.DeadUndecided)
		require.NoError(t, err)
		return f.outbox.Append(ctx, tr, event("a", "1"))
	})
	require.ErrorIs(t, err, fault.DBSerializationFailure)
	require.NoError(t, f.append(t.Context(), event("a", "1")))
}

// TestTheReleaseBeforeRunsBesideThisOne: its append and its claim, on the schema of this one, in the same lanes.
func TestTheReleaseBeforeRunsBesideThisOne(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	before, err := os.ReadFile("testdata/append_before_authority.sql")
	require.NoError(t, err)
	claim, err := os.ReadFile("testdata/claim_before_authority.sql")
	require.NoError(t, err)
	for i := range 6 {
		e := withID(event("a", fmt.Sprint(i)))
		if i%2 == 0 {
			require.NoError(t, f.append(t.Context(), e))
			continue
		}
		e.SchemaVersion, e.ContentType = 1, "application/json"
		args, err := pgoutbox.AppendArgs([]outbox.Event{e})
		require.NoError(t, err)
		f.exec(t, string(before), args...)
	}
	require.Equal(t, "0 1 2 3 4 5", get[string](t, f, `select string_agg(convert_from(payload, 'UTF8'), ' ' order by sequence) from caskeleton.outbox_event`))
	f.invariant(t)
	f.exec(t, string(claim), []string{}, []string{}, time.Time{}, 10, "before", int64(60_000_000))
	claims, err := f.driver.Claim(t.Context(), outbox.ClaimRequest{Owner: "now", Limit: 10, RunSize: 10, Lease: time.Minute})
	require.NoError(t, err)
	require.Empty(t, claims, "the other one has it")
	f.expire(t)
	claims, err = f.driver.Claim(t.Context(), outbox.ClaimRequest{Owner: "now", Limit: 10, RunSize: 10, Lease: time.Minute})
	require.NoError(t, err)
	require.Len(t, claims, 1)
	require.Len(t, claims[0].Run, 6)
}
