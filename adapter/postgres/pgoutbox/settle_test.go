package pgoutbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// like compares a lane with want, but for the exact time.
func (f *fixture) like(t *testing.T, id string, want laneRow) time.Duration {
	t.Helper()
	got := f.row(t, lane(id))
	require.NotNil(t, got)
	require.Empty(t, cmp.Diff(want, *got, cmpopts.IgnoreFields(laneRow{}, "In")))
	return got.In
}

func TestSettling(t *testing.T) {
	const placed = "order.placed"
	cases := []struct {
		name   string
		settle outbox.Settlement // of a first claim of three events, two of which are in the run
		want   laneRow
	}{
		{"all of the run", outbox.Settlement{Acked: 2}, laneRow{Next: 3, Due: true}},
		{"given back", outbox.Settlement{GiveBack: true}, laneRow{Next: 1, Due: true, HeadType: placed}},
		{"given back after one", outbox.Settlement{Acked: 1, GiveBack: true}, laneRow{Next: 2, Due: true, HeadType: "order.paid"}},
		{"failed", outbox.Settlement{Failure: "broker says no", Retry: time.Hour}, laneRow{Next: 1, Attempt: 1, LastError: "broker says no", HeadType: placed}},
		{"failed after one", outbox.Settlement{Acked: 1, Failure: "no", Retry: time.Hour}, laneRow{Next: 2, Attempt: 1, LastError: "no", HeadType: "order.paid"}},
		{"failed behind the run", outbox.Settlement{Acked: 2, Failure: "gap", Retry: time.Hour}, laneRow{Next: 3, Attempt: 1, LastError: "gap"}},
		{"failed, at once", outbox.Settlement{Failure: "no"}, laneRow{Next: 1, Attempt: 1, Due: true, LastError: "no", HeadType: placed}},
	}
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			for _, c := range cases {
				second := event(c.name, "2")
				second.Type = "order.paid"
				f.commit(t, event(c.name, "1"), second, event(c.name, "3"))
				r := request("r")
				r.RunSize = 2
				c.settle.Claim = f.claimOne(t, r)
				f.settle(t, c.settle)
				in := f.like(t, c.name, c.want)
				if c.settle.Retry > 0 {
					require.InDelta(t, time.Hour, in, float64(time.Minute), c.name)
				}
				f.invariant(t)

				f.expire(t)
				next := f.claimOne(t, r)
				require.Equal(t, c.want.Attempt+1, next.Attempt, c.name)
				require.Equal(t, c.want.Next, next.Next, c.name)
				require.Equal(t, []string{"1", "2", "3"}[c.want.Next-1:min(c.want.Next+1, 3)], payloads(next), c.name)
				f.exec(t, `update caskeleton.outbox_lane set due = null, hold = 'operator'`)
			}
		})
	}
}

func TestAnAttemptCountsUntilTheHeadIsAcknowledged(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, event("a", "1"), event("a", "2"))
			fail := func(acked int) outbox.Claim {
				c := f.claimOne(t, request("r"))
				f.settle(t, outbox.Settlement{Claim: c, Acked: acked, Failure: "no"})
				return c
			}
			require.Equal(t, 1, fail(0).Attempt)
			require.Equal(t, 2, fail(0).Attempt)
			c := f.claimOne(t, request("r"))
			require.Equal(t, 3, c.Attempt)
			f.settle(t, outbox.Settlement{Claim: c, GiveBack: true})
			f.like(t, "a", laneRow{Next: 1, Attempt: 2, Due: true, LastError: "no", HeadType: "order.placed"})
			require.Equal(t, 3, fail(1).Attempt)
			require.Equal(t, 2, fail(0).Attempt, "its first claim was the one in which it followed an acknowledged event")
			f.settle(t, done(f.claimOne(t, request("r"))))
			require.Nil(t, f.row(t, lane("a")))
			f.commit(t, event("a", "3"))
			f.like(t, "a", laneRow{Next: 3, Due: true, HeadType: "order.placed"})
			f.invariant(t)
		})
	}
}

func TestADrainedLaneIsRemovedAndMadeAgain(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, event("a", "1"))
			f.commit(t, event("b", "1"))
			claims := f.claim(t, request("r"))
			require.Len(t, claims, 2)
			f.commit(t, event("b", "2")) // behind the run
			f.settle(t, done(claims[0]), done(claims[1]))
			require.Nil(t, f.row(t, lane("a")))
			f.like(t, "b", laneRow{Next: 2, Due: true})
			f.invariant(t)
			f.commit(t, event("a", "2"))
			f.invariant(t)

			lost, err := f.driver.Settle(t.Context(), []outbox.Settlement{done(claims[0]), done(claims[1])})
			require.NoError(t, err)
			require.Equal(t, []outbox.Lane{claims[0].Lane, claims[1].Lane}, lost, "what made the lane before does not match")
			f.like(t, "a", laneRow{Next: 2, Due: true, HeadType: "order.placed"})
			require.Equal(t, []string{"2"}, payloads(f.claim(t, request("r", lane("a")))[0]))
		})
	}
}

// TestAnOpenAppendNeitherHidesNorBlocks has a business transaction stay open beside the delivery of what was committed before.
func TestAnOpenAppendNeitherHidesNorBlocks(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, event("a", "1"))
			end := f.open(t, tx.Options{}, event("a", "2"))
			c := f.claimOne(t, request("r"))
			require.Equal(t, []string{"1"}, payloads(c))
			require.False(t, c.More)
			f.settle(t, done(c))
			require.Equal(t, 1, f.row(t, lane("a")).Looks)
			f.invariantButOpen(t)

			for looks := 1; looks < 9; looks++ { // looking in vain costs no attempt, and is done ever more rarely
				f.expire(t)
				c = f.claimOne(t, request("r"))
				require.Empty(t, c.Run)
				require.False(t, c.Gap)
				before := get[time.Time](t, f, `select clock_timestamp()`)
				f.settle(t, done(c))
				row := f.row(t, lane("a"))
				require.Equal(t, looks+1, row.Looks)
				require.Zero(t, row.Attempt)
				wait := min(100*time.Millisecond, 2*time.Millisecond<<looks)
				require.False(t, get[time.Time](t, f, `select due from caskeleton.outbox_lane`).Before(before.Add(wait)))
				require.False(t, get[time.Time](t, f, `select due - interval '1 microsecond' * $1::bigint from caskeleton.outbox_lane`, wait.Microseconds()).
					After(get[time.Time](t, f, `select clock_timestamp()`)), "no later than that")
			}

			require.NoError(t, end(nil))
			f.exec(t, `update caskeleton.outbox_lane set due = clock_timestamp() + interval '1 hour'`)
			c = f.claimOne(t, request("r", lane("a"))) // the doorbell needs not wait
			require.Equal(t, []string{"2"}, payloads(c))
			f.settle(t, done(c))
			require.Nil(t, f.row(t, lane("a")))
			f.invariant(t)
		})
	}
}

// invariantButOpen allows a lane that stays because an append, not yet visible, is open on it.
func (f *fixture) invariantButOpen(t *testing.T) {
	t.Helper()
	require.Zero(t, get[int](t, f, `select count(*) from caskeleton.outbox_counter c left join caskeleton.outbox_lane l using (aggregatetype, aggregateid)
		where l.aggregateid is null and c.drained_sequence < c.last_sequence`))
}

// TestARolledBackAppendLeavesALaneToRemove: the lane was kept for events that never came.
func TestARolledBackAppendLeavesALaneToRemove(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, event("a", "1"))
			end := f.open(t, tx.Options{}, event("a", "2"))
			f.settle(t, done(f.claimOne(t, request("r"))))
			errBoom := errors.New("boom")
			require.ErrorIs(t, end(errBoom), errBoom)
			f.expire(t)
			c := f.claimOne(t, request("r"))
			require.Empty(t, c.Run)
			f.settle(t, done(c))
			require.Nil(t, f.row(t, lane("a")))
			f.invariant(t)
			f.commit(t, event("a", "2"))
			require.EqualValues(t, 2, f.claimOne(t, request("r")).Run[0].Sequence, "the sequence has no hole")
		})
	}
}

// TestEventsCommittedBehindAnEmptyLookAreDueAtOnce: the look was in vain, and yet there is something by the time it is settled.
func TestEventsCommittedBehindAnEmptyLookAreDueAtOnce(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, event("a", "1"))
			end := f.open(t, tx.Options{}, event("a", "2"))
			f.settle(t, done(f.claimOne(t, request("r"))))
			f.expire(t)
			c := f.claimOne(t, request("r"))
			require.Empty(t, c.Run)
			require.NoError(t, end(nil))
			f.settle(t, done(c))
			f.like(t, "a", laneRow{Next: 2, Due: true})
		})
	}
}

// TestALaneThatIsKnownToHaveMoreNeedsNoLook, though an append is open on it.
func TestALaneThatIsKnownToHaveMoreNeedsNoLook(t *testing.T) {
	f := newFixture(t, "")
	f.commit(t, numbered(3)...)
	end := f.open(t, tx.Options{}, event("a", "4"))
	r := request("r")
	r.RunSize = 2
	c := f.claimOne(t, r)
	f.settle(t, done(c))
	f.like(t, "a", laneRow{Next: 3, Due: true})

	f.exec(t, `delete from caskeleton.outbox_event where sequence = 3`)
	c = f.claimOne(t, r)
	require.True(t, c.Gap)
	f.settle(t, done(c))
	f.like(t, "a", laneRow{Next: 3, Due: true})
	require.NoError(t, end(nil))
}

// TestAnEmptyRunCanBeGivenBack: due at once, though an append is open.
func TestAnEmptyRunCanBeGivenBack(t *testing.T) {
	f := newFixture(t, "")
	f.commit(t, event("a", "1"))
	end := f.open(t, tx.Options{}, event("a", "2"))
	f.settle(t, done(f.claimOne(t, request("r"))))
	f.expire(t)
	f.settle(t, outbox.Settlement{Claim: f.claimOne(t, request("r")), GiveBack: true})
	f.like(t, "a", laneRow{Next: 2, Due: true})
	require.NoError(t, end(nil))
}

// TestALateCommitterIsDelivered: A inserts, B inserts and commits on another aggregate, all is drained, A commits.
func TestALateCommitterIsDelivered(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			for _, level := range []tx.Isolation{tx.ReadCommitted, tx.RepeatableRead, tx.Serializable} {
				end := f.open(t, tx.Options{Isolation: level}, event("a", "late"))
				f.commit(t, event("b", "early"))
				c := f.claimOne(t, request("r"))
				require.Equal(t, []string{"early"}, payloads(c))
				f.settle(t, done(c))
				require.Empty(t, f.claim(t, request("r")))
				require.NoError(t, end(nil))
				c = f.claimOne(t, request("r"))
				require.Equal(t, []string{"late"}, payloads(c))
				f.settle(t, done(c))
				f.invariant(t)
			}
		})
	}
}

// TestARepeatableReadAppendBesideARelay: its snapshot is older than what the relay did to its lane, which it never touches.
func TestARepeatableReadAppendBesideARelay(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			for _, level := range []tx.Isolation{tx.RepeatableRead, tx.Serializable} {
				f.commit(t, event("a", "1"))
				end := f.open(t, tx.Options{Isolation: level}, event("b", "1"), event("a", "2"))
				c := f.claimOne(t, request("r"))
				require.Equal(t, []string{"1"}, payloads(c))
				_, err := f.driver.Renew(t.Context(), []outbox.Claim{c}, time.Hour)
				require.NoError(t, err)
				f.settle(t, done(c))
				require.NoError(t, end(nil))
				f.expire(t)
				for _, c := range f.claim(t, request("r")) {
					require.Len(t, c.Run, 1)
					f.settle(t, done(c))
				}
				require.Zero(t, get[int](t, f, `select count(*) from caskeleton.outbox_lane`))
				f.invariant(t)
			}
		})
	}
}

// TestAStaleOwnerChangesNothing spoils each part of a claim in turn.
func TestAStaleOwnerChangesNothing(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, event("a", "1"), event("a", "2"))
			c := f.claimOne(t, request("r"))
			before := get[string](t, f, `select l::text from caskeleton.outbox_lane l`)
			refused := func(what string, stale outbox.Claim) {
				t.Helper()
				for _, s := range []outbox.Settlement{
					{Claim: stale, Acked: 1},
					done(stale),
					{Claim: stale, GiveBack: true},
					{Claim: stale, Failure: "no", Retry: time.Second},
				} {
					lost, err := f.driver.Settle(t.Context(), []outbox.Settlement{s})
					require.NoError(t, err)
					require.Equal(t, []outbox.Lane{stale.Lane}, lost, what)
				}
				lost, err := f.driver.Renew(t.Context(), []outbox.Claim{stale}, time.Minute)
				require.NoError(t, err)
				require.Equal(t, []outbox.Lane{stale.Lane}, lost, what)
				require.Equal(t, before, get[string](t, f, `select l::text from caskeleton.outbox_lane l`), what)
			}
			for part, spoil := range map[string]func(*outbox.Claim){
				"aggregate type": func(c *outbox.Claim) { c.AggregateType = "x" },
				"aggregate id":   func(c *outbox.Claim) { c.AggregateID = "x" },
				"owner":          func(c *outbox.Claim) { c.Owner = "x" },
				"token":          func(c *outbox.Claim) { c.Token = "x" },
				"attempt":        func(c *outbox.Claim) { c.Attempt++ },
				"epoch":          func(c *outbox.Claim) { c.Epoch++ },
				"next":           func(c *outbox.Claim) { c.Next++ },
			} {
				stale := c
				spoil(&stale)
				refused(part, stale)
			}
			f.exec(t, `update caskeleton.outbox_control set epoch = 2`)
			refused("epoch of the control row", c)
			f.exec(t, `update caskeleton.outbox_control set epoch = 1`)
			f.settle(t, outbox.Settlement{Claim: c, Acked: 1})
			before = get[string](t, f, `select l::text from caskeleton.outbox_lane l`)
			refused("settled before", c)
			require.EqualValues(t, 2, f.claimOne(t, request("r")).Next)
		})
	}
}

// TestARelayWaitsForACutover, and then acts by what that has committed.
func TestARelayWaitsForACutover(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, event("a", "1"))
			held := f.claimOne(t, request("r"))
			f.commit(t, event("b", "1"))
			for n, act := range []func() error{
				func() error {
					lost, err := f.driver.Settle(t.Context(), []outbox.Settlement{done(held)})
					return errors.Join(err, expect(len(lost) == 1, "the settlement took effect"))
				},
				func() error {
					lost, err := f.driver.Renew(t.Context(), []outbox.Claim{held}, time.Hour)
					return errors.Join(err, expect(len(lost) == 1, "the renewal took effect"))
				},
				func() error {
					claims, err := f.driver.Claim(t.Context(), request("r"))
					return errors.Join(err, expect(len(claims) == 1 && claims[0].Epoch == 4, "the claim is of the old epoch"))
				},
			} {
				acted := make(chan error, 1)
				require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
					q, err := postgres.Querier(tr)
					require.NoError(t, err)
					_, err = q.Exec(ctx, `select pg_advisory_xact_lock(1667330923, 1869968482)`)
					require.NoError(t, err)
					go func() { acted <- act() }()
					f.waitForLockWaiter(t)
					_, err = q.Exec(ctx, `update caskeleton.outbox_control set epoch = $1`, n+2)
					return err
				}))
				require.NoError(t, <-acted)
			}
		})
	}
}

// expect is an assertion for a goroutine, which must not end the test.
func expect(ok bool, otherwise string) error {
	if ok {
		return nil
	}
	return errors.New(otherwise)
}

func TestOneLostClaimDoesNotSpoilTheOthers(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, event("a", "1"), event("b", "1"), event("c", "1"))
			claims := f.claim(t, request("r"))
			require.Len(t, claims, 3)
			for i, c := range claims {
				if c.AggregateID == "b" {
					claims[i].Owner = "x"
				}
			}
			lost, err := f.driver.Renew(t.Context(), claims, time.Minute)
			require.NoError(t, err)
			require.Equal(t, []outbox.Lane{lane("b")}, lost)
			for _, id := range []string{"a", "c"} {
				require.InDelta(t, time.Minute, f.row(t, lane(id)).In, float64(30*time.Second))
			}
			require.InDelta(t, time.Hour, f.row(t, lane("b")).In, float64(time.Minute))
			lost, err = f.driver.Settle(t.Context(), []outbox.Settlement{done(claims[0]), done(claims[1]), done(claims[2])})
			require.NoError(t, err)
			require.Equal(t, []outbox.Lane{lane("b")}, lost)
			require.Equal(t, 1, get[int](t, f, `select count(*) from caskeleton.outbox_lane`))
			f.invariant(t)
		})
	}
}

// TestASettlementKeepsAHold that was set while the lane was leased.
func TestASettlementKeepsAHold(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			for _, s := range []outbox.Settlement{{Acked: 1}, {GiveBack: true}, {Failure: "no"}} {
				f.commit(t, event("a", "1"), event("a", "2"))
				s.Claim = f.claim(t, request("r"))[0]
				f.exec(t, `update caskeleton.outbox_lane set hold = 'operator'`)
				f.settle(t, s)
				require.Equal(t, "operator", get[string](t, f, `select hold from caskeleton.outbox_lane where due is null and owner is null`))
				f.exec(t, `update caskeleton.outbox_lane set hold = null, due = clock_timestamp()`)
			}
		})
	}
}

func TestASettlementThatCannotBeIsRefused(t *testing.T) {
	f := newFixture(t, "")
	f.commit(t, event("a", "1"))
	c := f.claimOne(t, request("r"))
	for _, acked := range []int{-1, 2} {
		_, err := f.driver.Settle(t.Context(), []outbox.Settlement{{Claim: c, Acked: acked}})
		require.ErrorContains(t, err, "of 1 events")
	}
	lost, err := f.driver.Settle(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, lost)
}

// TestLanesAreSettledInOneOrder: batches over the same lanes in opposite order never deadlock.
func TestLanesAreSettledInOneOrder(t *testing.T) {
	f := newFixture(t, "")
	for i := range 40 {
		f.commit(t, event(string(rune('A'+i)), "1"))
	}
	claims := f.claim(t, outbox.ClaimRequest{Owner: "r", Limit: 40, RunSize: 1, Lease: time.Hour})
	reversed := make([]outbox.Claim, len(claims))
	for i, c := range claims {
		reversed[len(claims)-1-i] = c
	}
	errs := make(chan error)
	for _, c := range [][]outbox.Claim{claims, reversed} {
		go func() {
			var err error
			for i := 0; i < 100 && err == nil; i++ {
				_, err = f.driver.Renew(t.Context(), c, time.Hour)
			}
			errs <- err
		}()
	}
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
}
