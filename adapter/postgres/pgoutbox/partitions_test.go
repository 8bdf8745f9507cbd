package pgoutbox_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

func (f *fixture) left(t *testing.T) int {
	t.Helper()
	n, err := f.driver.PartitionsLeft(t.Context())
	require.NoError(t, err)
	return n
}

func (f *fixture) partitions(t *testing.T) int {
	t.Helper()
	return get[int](t, f, `select count(*) from pg_inherits where inhparent = 'caskeleton.outbox_event'::regclass`)
}

func premake(t *testing.T, f *fixture, weeks int) int {
	t.Helper()
	made, err := pgoutbox.Premake(t.Context(), f.dsn, weeks)
	require.NoError(t, err)
	return made
}

func TestPremake(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, mode)
			require.Equal(t, 4, f.left(t))
			require.Zero(t, premake(t, f, 4))
			require.Equal(t, 2, premake(t, f, 6))
			require.Equal(t, 6, f.left(t))

			f.dropPartitions(t)
			require.Zero(t, f.left(t))
			require.ErrorIs(t, f.append(t.Context(), event("a", "1")), fault.OutboxPartitionMissing)
			require.Equal(t, 1, premake(t, f, 1))
			require.Equal(t, 1, f.left(t))
			f.commit(t, event("a", "1"))
			require.Equal(t, []string{"1"}, payloads(f.claimOne(t, request("r"))))
			require.True(t, get[bool](t, f, `select bool_and(i.indisvalid and i.indisprimary) from pg_index i join pg_inherits p on p.inhrelid = i.indrelid
			where p.inhparent = 'caskeleton.outbox_event'::regclass`))
		})
	}
}

// TestAGapInThePartitionsIsFilled, and counts no week behind it.
func TestAGapInThePartitionsIsFilled(t *testing.T) {
	f := newFixture(t, "")
	f.exec(t, `do $$ begin execute format('drop table caskeleton.%I', 'outbox_event_' || to_char(date_trunc('week', now() at time zone 'UTC') + interval '7 days', 'YYYYMMDD')); end $$`)
	require.Equal(t, 1, f.left(t))
	require.Equal(t, 1, premake(t, f, 4))
	require.Equal(t, 4, f.left(t))
}

// TestAnInterruptedDetachLeavesNoPartition: it takes nothing any more, and its name is in the way until somebody finishes the detach.
func TestAnInterruptedDetachLeavesNoPartition(t *testing.T) {
	f := newFixture(t, "")
	name := get[string](t, f, `select 'outbox_event_' || to_char(date_trunc('week', now() at time zone 'UTC') + interval '7 days', 'YYYYMMDD')`)
	conn := pgtest.Connect(t, f.dsn)
	end := f.open(t, tx.Options{}, event("a", "1"))
	_, err := conn.Exec(t.Context(), `set statement_timeout = '300ms'`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `alter table caskeleton.outbox_event detach partition caskeleton.`+name+` concurrently`)
	require.ErrorContains(t, err, "57014")
	require.NoError(t, end(nil))
	require.Equal(t, 1, f.left(t))
	_, err = pgoutbox.Premake(t.Context(), f.dsn, 2)
	require.ErrorContains(t, err, "42P07")
	_, err = conn.Exec(t.Context(), `alter table caskeleton.outbox_event detach partition caskeleton.`+name+` finalize; drop table caskeleton.`+name)
	require.NoError(t, err)
	require.Equal(t, 1, premake(t, f, 2))
}

// TestSixteenPartitionsAreEnough, but the next week's is always made.
func TestSixteenPartitionsAreEnough(t *testing.T) {
	f := newFixture(t, "")
	f.exec(t, `do $$ declare monday timestamp := date_trunc('week', now() at time zone 'UTC'); begin
		for n in 1..11 loop
			execute format('create table caskeleton.%I partition of caskeleton.outbox_event for values from (%L) to (%L)', 'outbox_event_' || to_char(monday - n * interval '7 days', 'YYYYMMDD'),
				(monday - n * interval '7 days') at time zone 'UTC', (monday - (n - 1) * interval '7 days') at time zone 'UTC');
		end loop; end $$`)
	require.Equal(t, 15, f.partitions(t))
	require.Equal(t, 1, premake(t, f, 8))
	require.Equal(t, 16, f.partitions(t))
	f.exec(t, `do $$ begin execute format('drop table caskeleton.%I', 'outbox_event_' || to_char(date_trunc('week', now() at time zone 'UTC') + interval '7 days', 'YYYYMMDD')); end $$`)
	f.exec(t, `create table caskeleton.outbox_event_old partition of caskeleton.outbox_event for values from ('2020-01-06 00:00+00') to ('2020-01-13 00:00+00')`)
	require.Equal(t, 16, f.partitions(t))
	require.Equal(t, 1, premake(t, f, 8))
	require.Equal(t, 17, f.partitions(t))
	require.Zero(t, premake(t, f, 8))
}

func TestPremakersTakeTurns(t *testing.T) {
	f := newFixture(t, "")
	f.dropPartitions(t)
	type result struct {
		made int
		err  error
	}
	results := make(chan result)
	for range 6 {
		go func() {
			made, err := pgoutbox.Premake(t.Context(), f.dsn, 6)
			results <- result{made, err}
		}()
	}
	total := 0
	for range 6 {
		r := <-results
		require.NoError(t, r.err)
		total += r.made
	}
	require.Equal(t, 6, total)
	require.Equal(t, 6, f.partitions(t))
}

// TestPremakeDoesNotWaitForAppends, nor they for it: an open append holds locks on the table.
func TestPremakeDoesNotWaitForAppends(t *testing.T) {
	f := newFixture(t, "")
	end := f.open(t, tx.Options{}, event("a", "1"))
	require.Equal(t, 2, premake(t, f, 6))
	require.NoError(t, end(nil))
}

func TestPremakeEndsWhereALockIsHeld(t *testing.T) {
	f := newFixture(t, "")
	require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		q, err := postgres.Querier(tr)
		require.NoError(t, err)
		_, err = q.Exec(ctx, `lock table caskeleton.outbox_event in access exclusive mode`)
		require.NoError(t, err)
		_, err = pgoutbox.Premake(ctx, f.dsn, 6)
		require.ErrorIs(t, err, fault.DBLockTimeout)
		return nil
	}))
	require.Equal(t, 4, f.partitions(t))
}

func TestPremakeSaysWhatIsWrong(t *testing.T) {
	f := newFixture(t, "")
	for _, weeks := range []int{0, 17} {
		_, err := pgoutbox.Premake(t.Context(), f.dsn, weeks)
		require.ErrorContains(t, err, "use 1 to 16")
	}
	_, err := pgoutbox.Premake(t.Context(), "postgres://%zz:secret@h/d", 4)
	require.ErrorContains(t, err, "cannot be parsed")
	require.NotContains(t, err.Error(), "secret")
	_, err = pgoutbox.Premake(t.Context(), pgtest.DSN(t), 4)
	require.Regexp(t, "SQLSTATE (42P01|3F000)", err.Error(), "the stream is not there: PostgreSQL 15 misses its schema first")

	u, err := url.Parse(f.dsn)
	require.NoError(t, err)
	u.Host, u.User = "127.0.0.1:1", url.UserPassword("u", "secret")
	_, err = pgoutbox.Premake(t.Context(), u.String(), 4)
	require.ErrorIs(t, err, fault.DBUnavailable)
	require.NotContains(t, err.Error(), "secret")
}
