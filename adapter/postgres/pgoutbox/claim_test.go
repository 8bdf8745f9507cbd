package pgoutbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

func TestAClaimLeasesWhatIsDue(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			require.Empty(t, f.claim(t, request("r")))
			f.commit(t, event("a", "1"), event("a", "2"))
			f.commit(t, event("b", "1"))
			r := request("r1")
			r.Limit = 1
			c := f.claimOne(t, r)
			require.Equal(t, lane("a"), c.Lane, "the one that is due for longest")
			require.Equal(t, []string{"1", "2"}, payloads(c))
			require.Equal(t, "r1", c.Owner)
			require.Equal(t, 1, c.Attempt)
			require.EqualValues(t, 1, c.Epoch)
			require.EqualValues(t, 1, c.Next)
			require.Equal(t, c.Since, c.Run[0].RecordedAt)
			require.False(t, c.More)
			require.False(t, c.Gap)
			got := f.row(t, lane("a"))
			require.InDelta(t, time.Hour, got.In, float64(time.Minute), "the lease")

			second := f.claimOne(t, request("r2"))
			require.Equal(t, lane("b"), second.Lane, "a lane has one owner")
			require.Empty(t, f.claim(t, request("r3", lane("a"), lane("b"))))

			f.expire(t)
			again := f.claim(t, request("r3"))
			require.Len(t, again, 2)
			for _, x := range again {
				require.Equal(t, 2, x.Attempt)
				require.NotEqual(t, c.Token, x.Token)
				require.NotEqual(t, second.Token, x.Token)
			}
		})
	}
}

func TestARunHasItsSizeAndSaysWhetherThereIsMore(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, numbered(4)...)
			r := request("r")
			for _, want := range []struct {
				size int
				run  []string
				more bool
			}{{3, []string{"1", "2", "3"}, true}, {4, []string{"1", "2", "3", "4"}, false}, {5, []string{"1", "2", "3", "4"}, false}} {
				f.expire(t)
				r.RunSize = want.size
				c := f.claimOne(t, r)
				require.Equal(t, want.run, payloads(c))
				require.Equal(t, want.more, c.More)
				require.False(t, c.Gap)
			}
		})
	}
}

// TestLargeAppendIsReadFromTheMiddle: its events share one time, so the lane's lower bound is no help there.
func TestALargeAppendIsDeliveredInRuns(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, numbered(25)...)
			f.commit(t, event("a", "26"))
			var got []string
			for f.row(t, lane("a")) != nil {
				c := f.claimOne(t, request("r"))
				got = append(got, payloads(c)...)
				f.settle(t, done(c))
			}
			var want []string
			for i := range 26 {
				want = append(want, fmt.Sprint(i+1))
			}
			require.Equal(t, want, got)
			f.invariant(t)
		})
	}
}

// TestADoorbell claims past the floor, and no lane that is owned, held, backing off or gone.
func TestADoorbell(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			for _, a := range []string{"free", "owned", "held", "failed", "waiting"} {
				f.commit(t, event(a, "1"))
			}
			f.exec(t, `update caskeleton.outbox_lane set due = null, hold = 'operator' where aggregateid = 'held'`)
			f.exec(t, `update caskeleton.outbox_lane set due = due + interval '1 hour', attempt = 1 where aggregateid = 'failed'`)
			f.exec(t, `update caskeleton.outbox_lane set due = due + interval '1 hour', looks = 3 where aggregateid = 'waiting'`)
			f.exec(t, `update caskeleton.outbox_lane set due = due + interval '1 hour', owner = 'x', token = gen_random_uuid() where aggregateid = 'owned'`)
			r := request("r", lane("owned"), lane("held"), lane("failed"), lane("gone"))
			r.Floor = get[time.Time](t, f, `select clock_timestamp() + interval '1 minute'`)
			require.Empty(t, f.claim(t, r))
			r.Rung = []outbox.Lane{lane("free"), lane("waiting"), lane("free")}
			require.Len(t, f.claim(t, r), 2)
		})
	}
}

// TestRungLanesTakeHalfOfAClaim: else a busy process would never see a lane that only the index knows.
func TestRungLanesTakeHalfOfAClaim(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			var rung []outbox.Lane
			f.commit(t, event("old", "1"))
			for i := range 6 {
				f.commit(t, event(fmt.Sprint(i), "1"))
				rung = append(rung, lane(fmt.Sprint(i)))
			}
			r := request("r", rung...)
			r.Limit = 4
			claims := f.claim(t, r)
			var ids []string
			for _, c := range claims {
				ids = append(ids, c.AggregateID)
			}
			require.ElementsMatch(t, []string{"0", "1", "old", "2"}, ids, "each once, and as many as may be")
		})
	}
}

func TestTheFloorHidesWhatIsDueBefore(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			_, _, ok, err := f.driver.NextDue(t.Context())
			require.NoError(t, err)
			require.False(t, ok)
			f.commit(t, event("a", "1"))
			f.commit(t, event("b", "1"))
			f.exec(t, `update caskeleton.outbox_lane set due = null, hold = 'type' where aggregateid = 'a'`)
			in, at, ok, err := f.driver.NextDue(t.Context())
			require.NoError(t, err)
			require.True(t, ok)
			require.Negative(t, in)
			require.Equal(t, get[time.Time](t, f, `select due from caskeleton.outbox_lane where aggregateid = 'b'`), at)

			f.exec(t, `update caskeleton.outbox_lane set due = due - interval '1 minute' where aggregateid = 'b'`)
			r := request("r")
			r.Floor = at
			require.Empty(t, f.claim(t, r))
			r.Floor = at.Add(-time.Minute)
			require.Len(t, f.claim(t, r), 1)
			in, _, ok, err = f.driver.NextDue(t.Context())
			require.NoError(t, err)
			require.True(t, ok, "the lease's end")
			require.InDelta(t, time.Hour, in, float64(time.Minute))
		})
	}
}

// TestAGapStopsTheLane has an envelope vanish: in the middle, at the head, and where nothing comes behind it.
func TestAGapStopsTheLane(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			for missing, run := range map[int][]string{1: nil, 2: {"1"}, 3: {"1", "2"}} {
				f.commit(t, event("a", "1"))
				f.commit(t, event("a", "2"))
				f.commit(t, event("a", "3"))
				f.exec(t, `delete from caskeleton.outbox_event where sequence = $1`, missing)
				c := f.claimOne(t, request("r"))
				require.Equal(t, run, payloads(c))
				require.True(t, c.Gap)
				require.False(t, c.More)
				f.settle(t, outbox.Settlement{Claim: c, Acked: len(run), Failure: "an event is missing", Retry: time.Hour})
				row := f.row(t, lane("a"))
				require.EqualValues(t, missing, row.Next, "it does not move past")
				require.False(t, row.Due)
				f.exec(t, `truncate caskeleton.outbox_event, caskeleton.outbox_counter, caskeleton.outbox_lane`)
			}
		})
	}
}

// TestClaimsWithAnOlderSnapshotThanTheLane holds a claim between its snapshot and its locks, by a control row that is slow to read. The
// lane it then locks is newer, and so must be the envelopes.
func TestClaimsWithAnOlderSnapshotThanTheLane(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, event("a", "1"))
			first := f.claimOne(t, request("r1"))
			f.exec(t, `alter table caskeleton.outbox_control rename to control_table`)
			f.exec(t, `create function public.slow() returns boolean language sql volatile as 'select true from (select pg_advisory_xact_lock_shared(7, 7)) l'`)
			f.exec(t, `create view caskeleton.outbox_control as select * from caskeleton.control_table where public.slow()`)
			f.expire(t)

			var claims []outbox.Claim
			claimed := make(chan error, 1)
			require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
				q, err := postgres.Querier(tr)
				require.NoError(t, err)
				_, err = q.Exec(ctx, `select pg_advisory_xact_lock(7, 7)`)
				require.NoError(t, err)
				go func() {
					var err error
					claims, err = f.driver.Claim(t.Context(), request("r2"))
					claimed <- err
				}()
				f.waitForLockWaiter(t)
				// Meanwhile the first owner finishes, and an append on another connection commits. They must not meet the slow view.
				f.exec(t, `insert into caskeleton.outbox_identity values ('0197fbc0-0000-7000-8000-00000000000a', now())`)
				f.exec(t, `insert into caskeleton.outbox_event select aggregatetype, aggregateid, clock_timestamp(), 2, '0197fbc0-0000-7000-8000-00000000000a',
				type, 1, null, content_type, headers, '2', clock_timestamp(), 1 from caskeleton.outbox_event`)
				f.exec(t, `update caskeleton.outbox_counter set last_sequence = 2`)
				f.exec(t, `update caskeleton.outbox_lane set next_sequence = 2, owner = null, token = null, attempt = 0`)
				return nil
			}))
			require.NoError(t, <-claimed)
			require.Len(t, claims, 1)
			require.EqualValues(t, 2, claims[0].Next, "the lane as it is now")
			require.Equal(t, []string{"2"}, payloads(claims[0]))
			require.False(t, claims[0].Gap)
			require.NotEqual(t, first.Token, claims[0].Token)
		})
	}
}

func TestTwoRelaysShareTheLanes(t *testing.T) {
	f := newFixture(t, "")
	for i := range 200 {
		f.commit(t, event(fmt.Sprint(i), "1"))
	}
	var mu sync.Mutex
	owners := map[outbox.Lane]string{}
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for {
				claims, err := f.driver.Claim(t.Context(), request(fmt.Sprint("r", n)))
				if err != nil {
					t.Errorf("claim: %v", err)
				}
				if len(claims) == 0 {
					return
				}
				mu.Lock()
				for _, c := range claims {
					if o, ok := owners[c.Lane]; ok {
						t.Errorf("%v is leased to %s and %s", c.Lane, o, c.Owner)
					}
					owners[c.Lane] = c.Owner
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	// A claim that met only locked rows came back empty, while others were still at work.
	for _, c := range f.claim(t, outbox.ClaimRequest{Owner: "r", Limit: 500, RunSize: 1, Lease: time.Hour}) {
		owners[c.Lane] = c.Owner
	}
	require.Len(t, owners, 200)
}

// TestAClaimWaitsForNobody: rows that others hold are passed over.
func TestAClaimWaitsForNobody(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, event("a", "1"))
			f.commit(t, event("b", "1"))
			require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
				q, err := postgres.Querier(tr)
				require.NoError(t, err)
				_, err = q.Exec(ctx, `select from caskeleton.outbox_lane where aggregateid = 'a' for update`)
				require.NoError(t, err)
				require.Equal(t, lane("b"), f.claimOne(t, request("r", lane("a"))).Lane)
				return nil
			}))
		})
	}
}

func TestARequestThatCannotWorkIsRefused(t *testing.T) {
	f := newFixture(t, "")
	for name, spoil := range map[string]func(*outbox.ClaimRequest){
		"owner": func(r *outbox.ClaimRequest) { r.Owner = "" },
		"limit": func(r *outbox.ClaimRequest) { r.Limit = 0 },
		"run":   func(r *outbox.ClaimRequest) { r.RunSize = 0 },
		"lease": func(r *outbox.ClaimRequest) { r.Lease = 0 },
	} {
		r := request("r")
		spoil(&r)
		_, err := f.driver.Claim(t.Context(), r)
		require.ErrorContains(t, err, "above 0", name)
	}
}
