package pgoutbox_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

const legacy = "legacy.outbox_event"

// adopting is a database with the Java skeleton's tables, in a schema of theirs, and the kit beside them.
func adopting(t *testing.T, mode string) *fixture {
	t.Helper()
	f := newFixture(t, mode)
	ddl, err := os.ReadFile("testdata/legacy.sql")
	require.NoError(t, err)
	_, err = pgtest.Connect(t, f.dsn).Exec(t.Context(), `create schema legacy; set search_path = legacy; `+string(ddl))
	require.NoError(t, err)
	return f
}

func (f *fixture) yield(t *testing.T) {
	t.Helper()
	require.NoError(t, pgoutbox.YieldAuthority(t.Context(), f.dsn, legacy))
}

const legacyInsert = `insert into legacy.outbox_event (id, aggregate_type, aggregate_id, event_type, payload, occurred_at, status, next_attempt_at)
	values ($1, $2, $3, $4, $5, clock_timestamp(), 'PENDING', clock_timestamp())`

// legacyAppend is what an old instance does.
func legacyAppend(ctx context.Context, db *postgres.DB, e outbox.Event) error {
	_, err := db.Exec(ctx, legacyInsert, e.ID, e.AggregateType, e.AggregateID, e.Type, string(e.Payload))
	return err
}

func withID(e outbox.Event) outbox.Event {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	e.ID = fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	return e
}

func TestWhileV1AppendsAreLegacyRows(t *testing.T) {
	t.Parallel()
	for _, mode := range execModes {
		for _, level := range []tx.Isolation{tx.ReadCommitted, tx.RepeatableRead, tx.Serializable} {
			t.Run(fmt.Sprint(mode, level), func(t *testing.T) {
				f := adopting(t, mode)
				f.yield(t)
				at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
				events := []outbox.Event{withID(event("a", `{"n":1}`)), withID(event("b", `{"n":2}`)), withID(event("a", `{"n":3}`))}
				events[0].OccurredAt = at
				require.NoError(t, f.runner.With(tx.Options{Isolation: level}).InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
					return f.outbox.Append(ctx, tr, events...)
				}))
				rows, err := f.db.Query(t.Context(), `select id::text, aggregate_type, aggregate_id, event_type, payload, status, attempt_count, next_attempt_at = occurred_at
					from legacy.outbox_event order by occurred_at`)
				require.NoError(t, err)
				type row struct {
					ID, AggregateType, AggregateID, Type, Payload, Status string
					Attempts                                              int
					Eligible                                              bool
				}
				got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
				require.NoError(t, err)
				var want []row
				for _, e := range events {
					want = append(want, row{e.ID, e.AggregateType, e.AggregateID, e.Type, string(e.Payload), "PENDING", 0, true})
				}
				require.Equal(t, want, got)
				require.Equal(t, at, get[time.Time](t, f, `select min(occurred_at) from legacy.outbox_event`).UTC())
				require.Zero(t, get[int](t, f, `select (select count(*) from caskeleton.outbox_event) + (select count(*) from caskeleton.outbox_lane) + (select count(*) from caskeleton.outbox_counter)`))

				require.ErrorIs(t, f.append(t.Context(), events[0]), fault.OutboxEventDuplicate)
			})
		}
	}
}

func TestWhileV1TheKitDeliversNothing(t *testing.T) {
	t.Parallel()
	f := adopting(t, "")
	f.yield(t)
	f.exec(t, `insert into caskeleton.outbox_lane (aggregatetype, aggregateid, next_sequence, next_recorded_at, due) values ('order', 'a', 1, now(), now())`)
	claims, err := f.driver.Claim(t.Context(), outbox.ClaimRequest{Owner: "r", Limit: 10, RunSize: 10, Lease: time.Minute, Rung: []outbox.Lane{lane("a")}})
	require.NoError(t, err)
	require.Empty(t, claims)
}

func TestPayloadsOfEveryColumnType(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"text", "jsonb", "json", "bytea"} {
		t.Run(typ, func(t *testing.T) {
			f := adopting(t, "")
			using := "payload::" + typ
			if typ == "bytea" {
				using = "convert_to(payload, 'UTF8')"
			}
			f.exec(t, `alter table legacy.outbox_event alter payload type `+typ+` using `+using)
			f.yield(t)
			require.NoError(t, f.append(t.Context(), event("a", `{"n": 1}`)))
			taken, err := pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadUndecided)
			require.NoError(t, err)
			require.Equal(t, pgoutbox.Taken{Copied: 1}, taken)
			require.JSONEq(t, `{"n": 1}`, string(get[[]byte](t, f, `select payload from caskeleton.outbox_event`)))
		})
	}
}

func TestTakingOverCopiesWhatIsUndelivered(t *testing.T) {
	t.Parallel()
	f := adopting(t, "")
	f.yield(t)
	for i, status := range []string{"PUBLISHED", "PENDING", "IN_FLIGHT", "FAILED", "DEAD", "PENDING"} {
		require.NoError(t, legacyAppend(t.Context(), f.db, withID(event("a", fmt.Sprint(i)))))
		f.exec(t, `update legacy.outbox_event set status = $1 where payload = $2`, status, fmt.Sprint(i))
	}
	_, err := pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadUndecided)
	require.ErrorContains(t, err, "has 1 events that were given up (DEAD)")
	require.Equal(t, "v1", get[string](t, f, `select authority from caskeleton.outbox_control`), "nothing was done")

	before := get[string](t, f, `select string_agg(o::text, E'\n' order by o) from legacy.outbox_event o`)
	taken, err := pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadLeave)
	require.NoError(t, err)
	require.Equal(t, pgoutbox.Taken{Copied: 4, Dead: 1}, taken)
	require.Equal(t, before, get[string](t, f, `select string_agg(o::text, E'\n' order by o) from legacy.outbox_event o`), "the legacy rows are kept")
	require.Equal(t, "1 2 3 5", get[string](t, f, `select string_agg(convert_from(payload, 'UTF8'), ' ' order by sequence) from caskeleton.outbox_event`))
	require.Equal(t, 4, get[int](t, f, `select count(*) from caskeleton.outbox_event e join legacy.outbox_event o on o.id = e.id and o.occurred_at = e.occurred_at
		and e.type = o.event_type and e.aggregatetype = o.aggregate_type and e.content_type = 'application/json' and e.schema_version = 1`))
	f.invariant(t)

	again, err := pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadUndecided)
	require.NoError(t, err)
	require.Equal(t, pgoutbox.Taken{Already: true}, again)
	require.ErrorContains(t, pgoutbox.YieldAuthority(t.Context(), f.dsn, legacy), "it goes from v1 to v2 only")
	require.NoError(t, f.append(t.Context(), event("a", "6")))
	require.Equal(t, 5, get[int](t, f, `select count(*) from caskeleton.outbox_event`))
}

func TestDeadEventsCanBeDeliveredInTheirPlaces(t *testing.T) {
	t.Parallel()
	f := adopting(t, "")
	f.yield(t)
	for i, status := range []string{"PENDING", "DEAD", "PENDING"} {
		require.NoError(t, legacyAppend(t.Context(), f.db, withID(event("a", fmt.Sprint(i)))))
		f.exec(t, `update legacy.outbox_event set status = $1 where payload = $2`, status, fmt.Sprint(i))
	}
	taken, err := pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadDeliver)
	require.NoError(t, err)
	require.Equal(t, pgoutbox.Taken{Copied: 3}, taken)
	require.Equal(t, "0 1 2", get[string](t, f, `select string_agg(convert_from(payload, 'UTF8'), ' ' order by sequence) from caskeleton.outbox_event`))
}

// TestAnOldInstanceFailsLoudly, also where its statement would change nothing, and in a session that replication uses.
func TestAnOldInstanceFailsLoudly(t *testing.T) {
	t.Parallel()
	f := adopting(t, "")
	f.yield(t)
	_, err := pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadUndecided)
	require.NoError(t, err)
	conn := pgtest.Connect(t, f.dsn)
	for _, sql := range []string{
		`insert into legacy.outbox_event select * from legacy.outbox_event`,
		`update legacy.outbox_event set status = 'IN_FLIGHT' where status = 'PENDING'`,
		`set session_replication_role = replica; update legacy.outbox_event set status = 'IN_FLIGHT'`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		require.ErrorContains(t, err, "this outbox is retired", sql)
		require.ErrorContains(t, err, "55000", sql)
	}
	_, err = conn.Exec(t.Context(), `delete from legacy.outbox_event`)
	require.NoError(t, err, "its reaper may go on")
}

func TestAuthorityRefuses(t *testing.T) {
	t.Parallel()
	f := adopting(t, "")
	f.exec(t, `create table legacy.part (id uuid); create table legacy.more (like legacy.outbox_event including all, extra int not null)`)
	for table, want := range map[string]string{
		"outbox_event":            "must be schema.table",
		`legacy."outbox_event"`:   "must be schema.table",
		"caskeleton.outbox_event": "must be schema.table",
		"legacy.nothing":          "is not there, or has no column id",
		"legacy.part":             "has no column aggregate_type",
		"legacy.more":             "may not be left out (extra)",
	} {
		require.ErrorContains(t, pgoutbox.YieldAuthority(t.Context(), f.dsn, table), want, table)
	}
	taken, err := pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadUndecided)
	require.NoError(t, err)
	require.True(t, taken.Already, "a new database is the kit's")
	_, err = pgoutbox.TakeAuthority(t.Context(), f.dsn, "burn")
	require.ErrorContains(t, err, "take leave or deliver")

	f.exec(t, `alter table legacy.outbox_event alter id type text`)
	f.yield(t)
	f.yield(t)
	require.ErrorContains(t, pgoutbox.YieldAuthority(t.Context(), f.dsn, "legacy.more"), "the authority is v1")
	f.exec(t, `insert into legacy.outbox_event select 'seven', 'order', 'a', 't', '{}', now(), 'PENDING', 0, now()`)
	_, err = pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadUndecided)
	require.ErrorContains(t, err, "1 undelivered events of legacy.outbox_event have ids that are not UUIDs")
	a, err := pgoutbox.ReadAuthority(t.Context(), f.dsn)
	require.NoError(t, err)
	require.Equal(t, pgoutbox.Authority{Version: "v1", Legacy: legacy}, a)

	g := adopting(t, "")
	require.NoError(t, g.append(t.Context(), event("a", "1")))
	require.ErrorContains(t, pgoutbox.YieldAuthority(t.Context(), g.dsn, legacy), "has recorded events already")

	_, err = pgoutbox.ReadAuthority(t.Context(), pgtest.DSN(t))
	require.ErrorContains(t, err, "run migrate up, with the stream outbox-storage, first")
}

// TestAWriterInTheWayIsNamed: an old instance's open transaction holds its table, and the change gives up within its tries.
func TestAWriterInTheWayIsNamed(t *testing.T) {
	t.Parallel()
	f := adopting(t, "")
	f.yield(t)
	conn := pgtest.Connect(t, f.dsn)
	open, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = open.Exec(t.Context(), `update legacy.outbox_event set status = 'DEAD'`)
	require.NoError(t, err)
	_, err = pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadUndecided)
	require.ErrorIs(t, err, fault.DBLockTimeout)
	require.ErrorContains(t, err, fmt.Sprintf("in the way are pid %d for ", conn.PgConn().PID()))
	require.NoError(t, open.Rollback(t.Context()))
	_, err = pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadUndecided)
	require.NoError(t, err)
}

// TestAWriterThatEndsInTimeIsWaitedFor, by tries that let others through in between; each change begins an epoch, in which older claims settle
// nothing.
func TestAWriterThatEndsInTimeIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := adopting(t, "")
	const epoch = `select epoch from caskeleton.outbox_control`
	first := get[int](t, f, epoch)
	f.yield(t)
	require.Equal(t, first+1, get[int](t, f, epoch))
	open, err := pgtest.Connect(t, f.dsn).Begin(t.Context())
	require.NoError(t, err)
	_, err = open.Exec(t.Context(), `lock table legacy.outbox_event in row exclusive mode`)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := pgoutbox.TakeAuthority(t.Context(), f.dsn, pgoutbox.DeadLeave)
		ended <- err
	}()
	require.Eventually(t, func() bool { // a try has failed
		return get[bool](t, f, `select exists (select from pg_stat_activity where datname = current_database() and application_name = 'caskeleton-authority'
			and state = 'idle' and query = 'rollback')`)
	}, 30*time.Second, time.Millisecond)
	require.NoError(t, open.Rollback(t.Context()))
	require.NoError(t, <-ended)
	require.Equal(t, first+2, get[int](t, f, epoch))
}

// TestTheRuntimeRoleAppendsWhileV1, with no right on the legacy table, whether it was granted before or after.
func TestTheRuntimeRoleAppendsWhileV1(t *testing.T) {
	t.Parallel()
	f := adopting(t, "")
	streams := []migrations.Stream{migrations.OutboxStorage(), migrations.OutboxPolling()}
	before := migrationstest.RuntimeDSN(t, f.dsn, streams...)
	f.yield(t)
	after := migrationstest.RuntimeDSN(t, f.dsn, streams...)
	for _, dsn := range []string{before, after} {
		db := open(t, postgres.Config{DSN: dsn})
		runner, err := tx.NewRunner(db, nil)
		require.NoError(t, err)
		ob, err := outbox.New(pgoutbox.New(db), nil)
		require.NoError(t, err)
		require.NoError(t, runner.InWrite(t.Context(), func(ctx context.Context, tr *tx.Tx) error { return ob.Append(ctx, tr, event("a", "{}")) }))
		_, err = db.Exec(t.Context(), `select * from legacy.outbox_event`)
		require.ErrorIs(t, err, fault.DBAccessDenied)
	}
	require.Equal(t, 2, get[int](t, f, `select count(*) from legacy.outbox_event`))
}

func TestTheOtherTablesOfTheJavaSkeletonAreKept(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	ddl, err := os.ReadFile("testdata/legacy.sql")
	require.NoError(t, err)
	conn := pgtest.Connect(t, dsn)
	_, err = conn.Exec(t.Context(), `set search_path = public; `+string(ddl)) // in public, where Flyway puts them
	require.NoError(t, err)
	content := func() string {
		var all []string
		for _, table := range []string{"outbox_event", "idempotency_record", "int_lock", "int_lock_7"} {
			var text string
			require.NoError(t, conn.QueryRow(t.Context(), `select coalesce(string_agg(o::text, E'\n'), '') from public.`+table+` o`).Scan(&text))
			all = append(all, text)
		}
		return strings.Join(all, "\n")
	}
	before := content()
	m, err := migrations.New(dsn, migrations.All(), &migrations.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = m.Up(t.Context())
	require.NoError(t, err)
	require.NoError(t, m.Verify(t.Context()))
	require.Equal(t, before, content())
}
