package pgoutbox_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/outbox"
)

// planner is a session in which the relay's statements have plans that were made when nothing was there, and stay: the oldest statistics
// that there can be.
type planner struct {
	*pgx.Conn
}

func newPlanner(t *testing.T, f *fixture) planner {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), f.dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	_, err = conn.Exec(t.Context(), `set plan_cache_mode = force_generic_plan`)
	require.NoError(t, err)
	p := planner{conn}
	for name, sql := range map[string]string{"claim": pgoutbox.ClaimSQL, "read": pgoutbox.ReadSQL, "settle": pgoutbox.SettleSQL, "due": pgoutbox.NextDueSQL} {
		_, err = conn.Exec(t.Context(), `prepare `+name+` as `+sql)
		require.NoError(t, err)
	}
	return p
}

// node is what EXPLAIN says of one step of a plan.
type node struct {
	Type     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Index    string `json:"Index Name"`
	Loops    int    `json:"Actual Loops"` // 0: never executed
	Hit      int    `json:"Shared Hit Blocks"`
	Read     int    `json:"Shared Read Blocks"`
	Plans    []node `json:"Plans"`
}

// buffers runs a prepared statement as the driver does, and rolls it back. It fails unless each table is reached by an index alone, and
// returns the indexes that were used and the number of pages that were looked at.
func (p planner) buffers(t *testing.T, call string, args ...any) (indexes []string, pages int) {
	t.Helper()
	trx, err := p.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, trx.Rollback(context.WithoutCancel(t.Context()))) }()
	_, err = trx.Exec(t.Context(), pgoutbox.PinSQL)
	require.NoError(t, err)
	var text string
	require.NoError(t, trx.QueryRow(t.Context(), `explain (analyze, buffers, format json) execute `+call,
		append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...).Scan(&text))
	var plans []struct{ Plan node }
	require.NoError(t, json.Unmarshal([]byte(text), &plans))
	var walk func(n node)
	walk = func(n node) {
		if strings.HasPrefix(n.Relation, "outbox_") && n.Type != "ModifyTable" {
			require.Contains(t, []string{"Index Scan", "Index Only Scan"}, n.Type, "%s of %s in\n%s", n.Type, n.Relation, text)
		}
		require.NotContains(t, []string{"Hash Join", "Merge Join", "Materialize"}, n.Type, text)
		if n.Index != "" && n.Loops > 0 && !slices.Contains(indexes, n.Index) {
			indexes = append(indexes, n.Index)
		}
		for _, c := range n.Plans {
			walk(c)
		}
	}
	walk(plans[0].Plan)
	return indexes, plans[0].Plan.Hit + plans[0].Plan.Read
}

func (p planner) claim(t *testing.T, rung []outbox.Lane, limit int) (indexes []string, pages int) {
	t.Helper()
	types, ids := make([]string, len(rung)), make([]string, len(rung))
	for i, l := range rung {
		types[i], ids[i] = l.AggregateType, l.AggregateID
	}
	return p.buffers(t, `claim($1::text[], $2::text[], '-infinity', $3, 'r', 1000000)`, types, ids, limit)
}

func (p planner) read(t *testing.T, c outbox.Claim) (indexes []string, pages int) {
	t.Helper()
	return p.buffers(t, `read($1::text[], $2::text[], $3::bigint[], $4::timestamptz[], $5)`,
		[]string{c.AggregateType}, []string{c.AggregateID}, []int64{c.Next}, []time.Time{c.Since}, 20)
}

func (p planner) settle(t *testing.T, c outbox.Claim) (indexes []string, pages int) {
	t.Helper()
	return p.buffers(t, `settle($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::timestamptz[],
		array[''], array[false], array[''], array[0])`, []string{c.AggregateType}, []string{c.AggregateID}, []string{c.Owner}, []string{c.Token},
		[]int64{int64(c.Attempt)}, []int64{c.Epoch}, []int64{c.Next}, []int64{c.Next + int64(len(c.Run))}, []time.Time{c.Since})
}

// fill makes lanes of so many events each, as appends would have.
func (f *fixture) fill(t *testing.T, lanes, depth int) {
	t.Helper()
	f.exec(t, `insert into caskeleton.outbox_event (aggregatetype, aggregateid, recorded_at, sequence, id, type, schema_version, content_type, headers, payload,
		occurred_at, epoch)
		select 'order', 'a' || a, clock_timestamp(), s, gen_random_uuid(), 'made', 1, 'application/json', '{}', convert_to(repeat('x', 200), 'UTF8'), now(), 1
		from generate_series(1, $2::int) s, generate_series(1, $1::int) a`, lanes, depth)
	f.exec(t, `insert into caskeleton.outbox_counter select aggregatetype, aggregateid, max(sequence), 0, max(recorded_at) from caskeleton.outbox_event group by 1, 2`)
	f.exec(t, `insert into caskeleton.outbox_lane (aggregatetype, aggregateid, next_sequence, next_recorded_at, due)
		select aggregatetype, aggregateid, 1, min(recorded_at), now() from caskeleton.outbox_event group by 1, 2`)
}

// TestPlansStayOnTheirIndexesWithStaleStatistics makes the plans while the tables are empty, and uses them when these are not. The pages
// of a claim follow from how many lanes it takes, those of a run from its length.
func TestPlansStayOnTheirIndexesWithStaleStatistics(t *testing.T) {
	f := newFixture(t, "")
	for _, table := range []string{"control", "counter", "lane"} {
		f.exec(t, `alter table caskeleton.outbox_`+table+` set (autovacuum_enabled = false)`)
		f.exec(t, `analyze caskeleton.outbox_`+table)
	}
	p := newPlanner(t, f)
	nobody := outbox.Claim{Lane: lane("x")}
	p.claim(t, nil, 10)
	p.read(t, nobody)
	p.settle(t, nobody)
	p.buffers(t, `due`)

	f.fill(t, 20000, 1)
	f.exec(t, `update caskeleton.outbox_counter set last_sequence = 3000 where aggregateid = 'a7'`)
	f.exec(t, `insert into caskeleton.outbox_event select aggregatetype, aggregateid, clock_timestamp(), s, gen_random_uuid(), type, 1, null, content_type, headers,
		payload, occurred_at, 1 from caskeleton.outbox_event, generate_series(2, 3000) s where aggregateid = 'a7'`)

	indexes, pages := p.claim(t, nil, 10)
	require.Contains(t, indexes, "outbox_lane_due")
	require.Contains(t, indexes, "outbox_lane_pkey")
	require.Less(t, pages, 300, "10 of 20,000 lanes")
	_, pages = p.claim(t, []outbox.Lane{lane("a3"), lane("a4")}, 0)
	require.Less(t, pages, 100, "2 of 20,000 lanes")
	_, pages = p.buffers(t, `due`)
	require.Less(t, pages, 20)

	deep := f.claim(t, outbox.ClaimRequest{Owner: "r", Limit: 1, RunSize: 1, Lease: time.Hour, Rung: []outbox.Lane{lane("a7")}})[0]
	_, pages = p.read(t, deep)
	require.Less(t, pages, 100, "20 of 3,000 events")
	deep.Next, deep.Since = 2950, get[time.Time](t, f, `select recorded_at from caskeleton.outbox_event where aggregateid = 'a7' and sequence = 2949`)
	_, pages = p.read(t, deep)
	require.Less(t, pages, 100, "20 of 3,000 events, from the middle")

	shallow := f.claim(t, outbox.ClaimRequest{Owner: "r", Limit: 1, RunSize: 1, Lease: time.Hour, Rung: []outbox.Lane{lane("a8")}})[0]
	_, pages = p.settle(t, shallow)
	require.Less(t, pages, 100)
}

// TestPlansStayOnTheirIndexesInSmallTables, where reading all would cost less by the planner's estimate.
func TestPlansStayOnTheirIndexesInSmallTables(t *testing.T) {
	for _, lanes := range []int{20, 1000} {
		f := newFixture(t, "")
		f.fill(t, lanes, 1)
		for _, table := range []string{"event", "control", "counter", "lane"} {
			f.exec(t, `vacuum analyze caskeleton.outbox_`+table)
		}
		p := newPlanner(t, f)
		p.claim(t, []outbox.Lane{lane("a1"), lane("a2")}, lanes)
		p.buffers(t, `due`)
		c := f.claim(t, outbox.ClaimRequest{Owner: "r", Limit: 1, RunSize: 1, Lease: time.Hour})[0]
		p.read(t, c)
		p.settle(t, c)
	}
}

// TestARunOfALargeAppendStartsAtItsHead: its events have one time, so that recorded_at alone would lead through all of them.
func TestARunOfALargeAppendStartsAtItsHead(t *testing.T) {
	f := newFixture(t, "")
	f.commit(t, numbered(20000)...)
	p := newPlanner(t, f)
	c := f.claimOne(t, request("r"))
	c.Next = 19000
	_, pages := p.read(t, c)
	require.Less(t, pages, 60)
}

// TestARunLeavesOldPartitionsOut: the lane knows from when on its events are.
func TestARunLeavesOldPartitionsOut(t *testing.T) {
	f := newFixture(t, "")
	f.exec(t, `create table caskeleton.outbox_event_old partition of caskeleton.outbox_event for values from ('2020-01-06 00:00+00') to ('2020-01-13 00:00+00')`)
	f.commit(t, event("a", "1"))
	indexes, _ := newPlanner(t, f).read(t, f.claimOne(t, request("r")))
	require.NotContains(t, indexes, "outbox_event_old_pkey")
}

// TestTheFloorKeepsClaimsFlatUnderAHeldSnapshot: dead entries of the index stay as long as somebody may see them, and the floor is above.
func TestTheFloorKeepsClaimsFlatUnderAHeldSnapshot(t *testing.T) {
	f := newFixture(t, "")
	f.fill(t, 3000, 1)
	p := newPlanner(t, f)
	holder, err := pgx.Connect(t.Context(), f.dsn)
	require.NoError(t, err)
	defer func() { _ = holder.Close(context.WithoutCancel(t.Context())) }()
	_, err = holder.Exec(t.Context(), `begin isolation level repeatable read; select 1`)
	require.NoError(t, err)
	f.exec(t, `update caskeleton.outbox_lane set due = clock_timestamp() - interval '1 second'`)
	f.exec(t, `delete from caskeleton.outbox_lane where aggregateid <> 'a1'`)
	floor := get[time.Time](t, f, `update caskeleton.outbox_lane set due = clock_timestamp() returning due`)
	_, all := p.claim(t, nil, 10)
	_, above := p.buffers(t, `claim('{}', '{}', $1, 10, 'r', 1000000)`, floor)
	require.Greater(t, all, 3*above, "the snapshot keeps what was deleted")
	require.Less(t, above, 60)
}
