package pgoutbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

func TestAnEventComesBackAsItWasRecorded(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			occurred := time.Date(2001, 2, 3, 4, 5, 6, 789000, time.FixedZone("", 3600))
			full := outbox.Event{
				ID: "0197fbc0-0000-7000-8000-00000000000a", Type: "order.placed", SchemaVersion: 7, AggregateType: "order", AggregateID: `o'1" \ 주문`,
				AggregateVersion: 42, Payload: []byte("\x00\xff'\\payload"), ContentType: "application/octet-stream",
				Headers: map[string]string{"a": `"<&>\ '`, "b": "\u2028 주문"}, OccurredAt: occurred,
			}
			bare := outbox.Event{Type: "order.paid", AggregateType: "order", AggregateID: full.AggregateID}
			f.commit(t, full, bare)

			c := f.claimOne(t, request("r"))
			require.Len(t, c.Run, 2)
			want := full
			want.Sequence = 1
			opts := cmp.Options{cmpopts.IgnoreFields(outbox.Event{}, "RecordedAt"), cmp.Comparer(time.Time.Equal)}
			require.Empty(t, cmp.Diff(want, c.Run[0], opts))
			got := c.Run[1]
			require.Equal(t, got.RecordedAt, got.OccurredAt)
			require.Equal(t, byte('7'), got.ID[14])
			want = outbox.Event{
				Type: "order.paid", SchemaVersion: 1, AggregateType: "order", AggregateID: full.AggregateID, Payload: []byte{},
				ContentType: "application/json", Headers: map[string]string{}, Sequence: 2,
			}
			require.Empty(t, cmp.Diff(want, got, opts, cmpopts.IgnoreFields(outbox.Event{}, "ID", "OccurredAt")))
			require.WithinDuration(t, get[time.Time](t, f, `select clock_timestamp()`), got.RecordedAt, time.Minute)
		})
	}
}

func TestOneCallRecordsManyAggregates(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			var events []outbox.Event
			for i := range 5 {
				for _, a := range []string{"c", "a", "b"} {
					events = append(events, event(a, fmt.Sprint(a, i)))
				}
			}
			f.commit(t, events...)
			f.commit(t, event("b", "b5"))
			claims := f.claim(t, request("r"))
			require.Len(t, claims, 3)
			for _, c := range claims {
				a := c.AggregateID
				want := []string{a + "0", a + "1", a + "2", a + "3", a + "4"}
				if a == "b" {
					want = append(want, "b5")
				}
				require.Equal(t, want, payloads(c))
				for i, e := range c.Run {
					require.EqualValues(t, i+1, e.Sequence)
				}
			}
			require.Equal(t, 16, get[int](t, f, `select count(*) from caskeleton.outbox_identity i join caskeleton.outbox_event e using (id, recorded_at)`))
			f.invariant(t)
		})
	}
}

// TestAppendAtEachIsolation: appends of one transaction after another, at every level, twice in one transaction.
func TestAppendAtEachIsolation(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			for _, level := range []tx.Isolation{tx.ReadCommitted, tx.RepeatableRead, tx.Serializable} {
				require.NoError(t, f.runner.With(tx.Options{Isolation: level}).InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
					require.NoError(t, f.outbox.Append(ctx, tr, event("a", "1"), event("b", "1")))
					return f.outbox.Append(ctx, tr, event("b", "2"), event("a", "2"))
				}))
				claims := f.claim(t, request("r"))
				require.Len(t, claims, 2)
				for _, c := range claims {
					require.Equal(t, []string{"1", "2"}, payloads(c))
					f.settle(t, done(c))
				}
				require.Nil(t, f.row(t, lane("a")))
				f.invariant(t)
			}
		})
	}
}

// TestOtherLevelsLockTheControlRow: under a snapshot that is older than a change of the mode, the append fails rather than follow the old one.
func TestOtherLevelsLockTheControlRow(t *testing.T) {
	for _, level := range []tx.Isolation{tx.RepeatableRead, tx.Serializable} {
		f := newFixture(t, "")
		err := f.runner.With(tx.Options{Isolation: level}).InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
			q, err := postgres.Querier(tr)
			require.NoError(t, err)
			_, err = q.Exec(ctx, `select 1`) // takes the snapshot
			require.NoError(t, err)
			f.exec(t, `update caskeleton.outbox_control set mode = 'external', epoch = 2`)
			return f.outbox.Append(ctx, tr, event("a", "1"))
		})
		require.ErrorIs(t, err, fault.DBSerializationFailure)
		require.True(t, fault.Retryable(err))

		end := f.open(t, tx.Options{Isolation: level}, event("a", "1"))
		_, err = f.db.Exec(t.Context(), `set lock_timeout = '10ms'; update caskeleton.outbox_control set epoch = 3`)
		require.ErrorIs(t, err, fault.DBLockTimeout, "the change waits for the append")
		require.NoError(t, end(nil))
	}
}

// TestReadCommittedReadsTheModeBehindTheAdvisoryLock lets an append wait for a cutover: it follows the mode that the cutover commits.
func TestReadCommittedReadsTheModeBehindTheAdvisoryLock(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			appended := make(chan error, 1)
			require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
				q, err := postgres.Querier(tr)
				require.NoError(t, err)
				_, err = q.Exec(ctx, `select pg_advisory_xact_lock(1667330923, 1869968482)`)
				require.NoError(t, err)
				go func() { appended <- f.append(t.Context(), event("a", "1")) }()
				f.waitForLockWaiter(t)
				_, err = q.Exec(ctx, `update caskeleton.outbox_control set mode = 'external', epoch = 2`)
				return err
			}))
			require.NoError(t, <-appended)
			require.Nil(t, f.row(t, lane("a")), "no lane is made in external mode")
			require.Equal(t, int64(2), get[int64](t, f, `select epoch from caskeleton.outbox_event`))
			require.Equal(t, "1 1", get[string](t, f, `select last_sequence || ' ' || drained_sequence from caskeleton.outbox_counter`))

			f.commit(t, event("a", "2"), event("a", "3"))
			require.Equal(t, "3 3", get[string](t, f, `select last_sequence || ' ' || drained_sequence from caskeleton.outbox_counter`))
			f.exec(t, `update caskeleton.outbox_control set mode = 'paused', epoch = 3`)
			f.commit(t, event("a", "4"))
			require.EqualValues(t, 4, f.row(t, lane("a")).Next, "in paused mode lanes are made")
			require.Empty(t, f.claim(t, request("r", lane("a"))), "and not claimed")
			f.exec(t, `update caskeleton.outbox_control set mode = 'external', epoch = 4`)
			f.commit(t, event("a", "5"))
			require.Equal(t, "5 3", get[string](t, f, `select last_sequence || ' ' || drained_sequence from caskeleton.outbox_counter`), "what is not drained stays so")
			f.invariant(t)
		})
	}
}

func (f *fixture) waitForLockWaiter(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return get[int](t, f, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) > 0
	}, 20*time.Second, time.Millisecond)
}

func TestADuplicateIdFailsTheTransaction(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			e := event("a", "1")
			e.ID = "0197fbc0-0000-7000-8000-00000000000a"
			f.commit(t, e)
			e.AggregateID = "b"
			err := f.append(t.Context(), event("c", "1"), e)
			require.ErrorIs(t, err, fault.OutboxEventDuplicate)
			require.Equal(t, fault.OutboxEventDuplicate, fault.CodeOf(err))
			require.Equal(t, 1, get[int](t, f, `select count(*) from caskeleton.outbox_event`))
			f.invariant(t)

			// A unique violation of the business's own is not ours.
			f.exec(t, `create table public.outbox_identity (id int primary key)`)
			err = f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
				q, err := postgres.Querier(tr)
				require.NoError(t, err)
				_, err = q.Exec(ctx, `insert into public.outbox_identity values (1), (1)`)
				return err
			})
			require.ErrorIs(t, err, fault.DBUniqueViolation)
			require.NotErrorIs(t, err, fault.OutboxEventDuplicate)
		})
	}
}

// TestATakenKeyIsNotADuplicateId: only the identity table speaks of ids.
func TestATakenKeyIsNotADuplicateId(t *testing.T) {
	f := newFixture(t, "")
	f.exec(t, `insert into caskeleton.outbox_lane (aggregatetype, aggregateid, next_sequence, next_recorded_at) values ('order', 'a', 1, now())`)
	err := f.append(t.Context(), event("a", "1"))
	require.ErrorIs(t, err, fault.DBUniqueViolation)
	require.NotErrorIs(t, err, fault.OutboxEventDuplicate)
}

func TestAMissingPartitionIsNamed(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.dropPartitions(t)
			err := f.append(t.Context(), event("a", "1"))
			require.ErrorIs(t, err, fault.OutboxPartitionMissing)
			require.Equal(t, fault.OutboxPartitionMissing, fault.CodeOf(err))
			require.Contains(t, fault.CodeOf(err).Hint(), "maintenance")

			f.exec(t, `alter table caskeleton.outbox_counter add constraint mine check (last_sequence > 1)`)
			require.ErrorIs(t, f.append(t.Context(), event("a", "1")), fault.DBCheckViolation, "a constraint has a name")
		})
	}
}

// TestOnlyTheOutboxSaysWhatIsItsOwn has a trigger, as a service may add one, fail in ways that are nearly those of the outbox.
func TestOnlyTheOutboxSaysWhatIsItsOwn(t *testing.T) {
	f := newFixture(t, "")
	f.exec(t, `create function public.fail() returns trigger language plpgsql as $$ begin
		raise exception using errcode = tg_argv[0], schema = tg_argv[1], table = tg_argv[2], constraint = tg_argv[3]; end $$`)
	for args, want := range map[string]fault.Code{
		`'23505', 'caskeleton', 'outbox_identity', ''`: fault.OutboxEventDuplicate,
		`'23505', 'public', 'outbox_identity', ''`:     fault.DBUniqueViolation,
		`'23505', 'caskeleton', 'outbox_event', ''`:    fault.DBUniqueViolation,
		`'23503', 'caskeleton', 'outbox_identity', ''`: fault.DBForeignKeyViolation,
		`'23514', 'caskeleton', 'outbox_event', ''`:    fault.OutboxPartitionMissing,
		`'23514', 'public', 'outbox_event', 'x'`:       fault.DBCheckViolation,
		`'23514', 'caskeleton', 'outbox_event', 'x'`:   fault.DBCheckViolation,
		`'23514', 'caskeleton', 'outbox_identity', ''`: fault.DBServerFault,
	} {
		f.exec(t, `create or replace trigger fail before insert on caskeleton.outbox_identity for each row execute function public.fail(`+args+`)`)
		require.Equal(t, want, fault.CodeOf(f.append(t.Context(), event("a", "1"))), args)
	}
}

func (f *fixture) dropPartitions(t *testing.T) {
	t.Helper()
	f.exec(t, `do $$ declare p text; begin
		for p in select inhrelid::regclass from pg_inherits where inhparent = 'caskeleton.outbox_event'::regclass loop execute 'drop table ' || p; end loop; end $$`)
}

func TestALostControlRowIsNoticed(t *testing.T) {
	f := newFixture(t, "")
	f.exec(t, `delete from caskeleton.outbox_control`)
	require.ErrorContains(t, f.append(t.Context(), event("a", "1")), "0 of 1 events were recorded")
}

func TestAnotherDriversTransactionIsRefused(t *testing.T) {
	f := newFixture(t, "")
	runner, err := tx.NewRunner(foreign{}, nil)
	require.NoError(t, err)
	err = runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error { return f.outbox.Append(ctx, tr, event("a", "1")) })
	require.ErrorContains(t, err, "another driver")
}

// foreign begins transactions that are not PostgreSQL's.
type foreign struct{ tx.Conn }

func (f foreign) Begin(context.Context, tx.BeginOptions) (tx.Conn, error) { return f, nil }
func (foreign) Commit(context.Context) error                              { return nil }
func (foreign) Rollback(context.Context) error                            { return nil }

// TestRecordedAtNeverGoesBack has a counter from the future, as a clock that was set back leaves it.
func TestRecordedAtNeverGoesBack(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			f.commit(t, event("a", "1"))
			f.exec(t, `update caskeleton.outbox_counter set last_recorded_at = last_recorded_at + interval '1 hour'`)
			f.commit(t, event("a", "2"))
			c := f.claimOne(t, request("r"))
			require.Equal(t, []string{"1", "2"}, payloads(c))
			require.GreaterOrEqual(t, c.Run[1].RecordedAt.Sub(c.Run[0].RecordedAt), time.Hour)
		})
	}
}

// TestAggregatesAreLockedInOneOrder: calls over the same aggregates in opposite order never deadlock.
func TestAggregatesAreLockedInOneOrder(t *testing.T) {
	f := newFixture(t, "")
	const rounds, writers = 40, 6
	var wg sync.WaitGroup
	errs := make(chan error, rounds*writers)
	for w := range writers {
		wg.Go(func() {
			for range rounds {
				var events []outbox.Event
				for i := range 12 {
					n := i
					if w%2 == 0 {
						n = 11 - i
					}
					events = append(events, event(fmt.Sprint("a", n), "x"))
				}
				if err := f.append(t.Context(), events...); err != nil {
					errs <- err
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, rounds*writers, get[int](t, f, `select min(last_sequence) from caskeleton.outbox_counter`))
}

// TestWhatPassesValidationIsStored sends the largest of everything.
func TestWhatPassesValidationIsStored(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			long := strings.Repeat("\u00e9", 127) + "x"
			e := outbox.Event{
				Type: long, AggregateType: long, AggregateID: long, ContentType: long, SchemaVersion: 1<<31 - 1, AggregateVersion: 1<<63 - 1,
				Payload: []byte(strings.Repeat("\x00", 1<<20)), Headers: map[string]string{"h": strings.Repeat("\u0001", 16<<10-1)},
				OccurredAt: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
			}
			f.commit(t, e, outbox.Event{Type: "t", AggregateType: "t", AggregateID: "t", OccurredAt: time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)})
			for _, c := range f.claim(t, request("r")) {
				if c.AggregateID == long {
					require.Equal(t, e.Payload, c.Run[0].Payload)
					require.Equal(t, e.Headers, c.Run[0].Headers)
					require.True(t, e.OccurredAt.Equal(c.Run[0].OccurredAt))
				}
				f.settle(t, done(c))
			}
			f.invariant(t)
			require.Zero(t, get[int](t, f, `select count(*) from caskeleton.outbox_lane`))
		})
	}
}
