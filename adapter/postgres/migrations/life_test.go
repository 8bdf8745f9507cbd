package migrations

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// rows is a row of each stream's own, and how to count it.
var rows = map[string]struct{ insert, count string }{
	"idempotency": {`insert into caskeleton.idempotency_key values ('v1', '\x00')`, `select count(*) from caskeleton.idempotency_key`},
	"outbox-storage": {
		`insert into caskeleton.outbox_counter values ('order', '1', 1, 0, now())`,
		`select count(*) from caskeleton.outbox_counter`,
	},
	"outbox-polling": {
		`insert into caskeleton.outbox_lane (aggregatetype, aggregateid, next_sequence, next_recorded_at) values ('order', '1', 1, now())`,
		`select count(*) from caskeleton.outbox_lane`,
	},
	"lock": {
		`insert into caskeleton.lock_lease (digest, region, name, token, acquired_at, expires_at) values (decode(repeat('00', 32), 'hex'), 'r', 'n', decode(repeat('00', 16), 'hex'), now(), now())`,
		`select count(*) from caskeleton.lock_lease`,
	},
	"inbox": {
		`insert into caskeleton.inbox_message (consumer, message_id, state, received_at, completed_at) values ('c', 'm', 'COMPLETED', now(), now())`,
		`select count(*) from caskeleton.inbox_message`,
	},
}

// TestTheLifeOfEachStream: off, on for the first time beside what is there already, off, and on again.
func TestTheLifeOfEachStream(t *testing.T) {
	t.Parallel()
	for i, s := range All() {
		if s.Name == "core" {
			continue // always on: TestUpAddsCoreAndRunsItFirst
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			row, ok := rows[s.Name]
			require.True(t, ok, "give the stream a row in rows")
			others := append(All()[:i:i], All()[i+1:]...)
			dsn := emptyDSN(t)
			up(t, dsn, others...)
			require.NoError(t, migrator(t, dsn, nil, others...).Verify(t.Context()), "off")
			require.False(t, query[bool](t, dsn, `select to_regclass($1) is not null`, s.table()))
			without := schemaOf(t, dsn)

			first := filesOf(s)
			require.Equal(t, first, up(t, dsn, append(others, s)...), "on, in a schema that is not empty")
			require.Equal(t, "0", query[string](t, dsn, `select min(version_id)::text from `+s.table()), "the baseline")
			on := schemaOf(t, dsn)
			require.NotEqual(t, without, on)
			execSQL(t, dsn, row.insert)

			require.Empty(t, up(t, dsn, others...), "off again")
			require.NoError(t, migrator(t, dsn, nil, others...).Verify(t.Context()))
			require.Empty(t, cmp.Diff(on, schemaOf(t, dsn)), "nothing is taken away")

			require.Empty(t, up(t, dsn, append(others, s)...), "on again")
			require.NoError(t, migrator(t, dsn, nil, append(others, s)...).Verify(t.Context()))
			require.Equal(t, 1, query[int](t, dsn, row.count))
			require.Empty(t, cmp.Diff(on, schemaOf(t, dsn)))
		})
	}
}

// TestAStreamMeetsATableThatIsNotItsOwn: only its history says what it has, so that it neither takes the table for its own nor harms it.
func TestAStreamMeetsATableThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	dsn := emptyDSN(t)
	execSQL(t, dsn, `create schema caskeleton; create table caskeleton.inbox_message (id int); insert into caskeleton.inbox_message values (7)`)
	_, err := migrator(t, dsn, nil, Inbox()).Up(t.Context())
	require.ErrorContains(t, err, "stream inbox: 00001_inbox_message.sql failed, nothing of it was kept")
	require.ErrorContains(t, err, "SQLSTATE 42P07")
	require.Equal(t, 7, query[int](t, dsn, `select id from caskeleton.inbox_message`))

	execSQL(t, dsn, `create schema legacy; alter table caskeleton.inbox_message set schema legacy`) // as the runbook says
	require.Equal(t, filesOf(Inbox()), up(t, dsn, Inbox()))
	require.Equal(t, 7, query[int](t, dsn, `select id from legacy.inbox_message`))
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ names, want []string }{
		{nil, []string{"core"}},
		{[]string{" inbox", "idempotency "}, []string{"core", "idempotency", "inbox"}},
		{[]string{"core", "inbox", "inbox"}, []string{"core", "inbox"}},
	} {
		streams, err := Select(c.names...)
		require.NoError(t, err)
		var got []string
		for _, s := range streams {
			got = append(got, s.Name)
		}
		require.Equal(t, c.want, got)
	}
	for _, name := range []string{"", "outbox", "all"} {
		_, err := Select(name)
		require.ErrorContains(t, err, "take some of core, idempotency, outbox-storage")
	}
}

// filesOf returns "stream file" of all of a stream.
func filesOf(s Stream) []string {
	files, err := readFiles(s)
	if err != nil {
		panic(err)
	}
	var out []string
	for _, f := range files {
		out = append(out, s.Name+" "+f.name)
	}
	return out
}
