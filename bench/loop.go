package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The statements of a relay that does nothing else: no epochs, no holds, no failures, no doorbell, no plans pinned.
const (
	bareClaimSQL = `
with due as materialized (
  select aggregatetype, aggregateid from caskeleton.outbox_lane
  where due >= $1 and due <= statement_timestamp() order by due limit $2 for update skip locked
)
update caskeleton.outbox_lane l
set owner = $4, token = gen_random_uuid(), attempt = l.attempt + 1, due = clock_timestamp() + $3::interval
from due where l.aggregatetype = due.aggregatetype and l.aggregateid = due.aggregateid
returning l.aggregatetype, l.aggregateid, l.token, l.next_sequence, l.next_recorded_at`

	bareReadSQL = `
select r.n, e.sequence, e.recorded_at, e.id, e.type, e.headers, e.payload
from unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[]) with ordinality as r (aggregatetype, aggregateid, sequence, recorded_at, n)
cross join lateral (
  select sequence, recorded_at, id, type, headers, payload from caskeleton.outbox_event
  where aggregatetype = r.aggregatetype and aggregateid = r.aggregateid and recorded_at >= r.recorded_at and sequence >= r.sequence
  order by recorded_at, sequence limit $5
) e`

	bareCompleteSQL = `
with x as materialized (
  select * from unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[], $5::bigint[], $6::timestamptz[], $7::bool[])
  as x (aggregatetype, aggregateid, token, claimed, next, recorded_at, more)
), mine as materialized (
  select l.aggregatetype, l.aggregateid from caskeleton.outbox_lane l join x on l.aggregatetype = x.aggregatetype and l.aggregateid = x.aggregateid
  where l.token = x.token and l.next_sequence = x.claimed order by l.aggregatetype, l.aggregateid for update of l
), drained as materialized (
  select c.aggregatetype, c.aggregateid, c.last_sequence
  from caskeleton.outbox_counter c join x on c.aggregatetype = x.aggregatetype and c.aggregateid = x.aggregateid
  join mine m on m.aggregatetype = x.aggregatetype and m.aggregateid = x.aggregateid
  where not x.more and c.last_sequence = x.next - 1 order by c.aggregatetype, c.aggregateid for update of c skip locked
), counter as (
  update caskeleton.outbox_counter c set drained_sequence = d.last_sequence from drained d
  where c.aggregatetype = d.aggregatetype and c.aggregateid = d.aggregateid
), removed as (
  delete from caskeleton.outbox_lane l using drained d where l.aggregatetype = d.aggregatetype and l.aggregateid = d.aggregateid
), kept as (
  update caskeleton.outbox_lane l
  set next_sequence = x.next, next_recorded_at = x.recorded_at, owner = null, token = null, attempt = 0, looks = 0, due = clock_timestamp()
  from x join mine m on m.aggregatetype = x.aggregatetype and m.aggregateid = x.aggregateid
  where l.aggregatetype = x.aggregatetype and l.aggregateid = x.aggregateid
    and not exists (select from drained d where d.aggregatetype = x.aggregatetype and d.aggregateid = x.aggregateid)
)
select count(*) from mine`
)

// bareLane is a lane that was claimed, and its run.
type bareLane struct {
	kind, id string
	token    [16]byte
	claimed  int64
	since    time.Time // of the head, then of the last event read
	run      []bareEvent
}

type bareEvent struct {
	sequence         int64
	recorded         time.Time
	id               [16]byte
	kind             string
	headers, payload []byte
}

// loop publishes n events one batch after the other, in the sizes that the relay has by default. It does not look whether lanes whose
// last run was full have more.
func (b *backlog) loop(ctx context.Context, n int) error {
	const batch, size = 100, 20
	for n > 0 {
		lanes, err := bareClaim(ctx, b.bare, batch, size)
		if err != nil {
			return err
		}
		if len(lanes) == 0 {
			return fmt.Errorf("%d events were not found", n)
		}
		for _, l := range lanes {
			n -= len(l.run)
		}
		if err := bareComplete(ctx, b.bare, lanes, size); err != nil {
			return err
		}
	}
	return nil
}

func bareClaim(ctx context.Context, pool *pgxpool.Pool, batch, size int) ([]*bareLane, error) {
	rows, err := pool.Query(ctx, bareClaimSQL, time.Unix(0, 0), batch, 30*time.Second, "bare")
	if err != nil {
		return nil, err
	}
	lanes, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (*bareLane, error) {
		l := &bareLane{}
		return l, r.Scan(&l.kind, &l.id, &l.token, &l.claimed, &l.since)
	})
	if err != nil || len(lanes) == 0 {
		return nil, err
	}
	kinds, ids, next, since := make([]string, len(lanes)), make([]string, len(lanes)), make([]int64, len(lanes)), make([]time.Time, len(lanes))
	for i, l := range lanes {
		kinds[i], ids[i], next[i], since[i] = l.kind, l.id, l.claimed, l.since
	}
	rows, err = pool.Query(ctx, bareReadSQL, kinds, ids, next, since, size)
	if err != nil {
		return nil, err
	}
	var i int
	var e bareEvent
	_, err = pgx.ForEachRow(rows, []any{&i, &e.sequence, &e.recorded, &e.id, &e.kind, &e.headers, &e.payload}, func() error {
		l := lanes[i-1]
		if want := l.claimed + int64(len(l.run)); e.sequence != want {
			return fmt.Errorf("event %d of %s is missing", want, l.id)
		}
		l.run, l.since = append(l.run, e), e.recorded
		e.headers, e.payload = nil, nil // pgx would write the next row's over them
		return nil
	})
	return lanes, err
}

func bareComplete(ctx context.Context, pool *pgxpool.Pool, lanes []*bareLane, size int) error {
	slices.SortFunc(lanes, func(a, b *bareLane) int { return cmp.Compare(a.id, b.id) })
	n := len(lanes)
	kinds, ids, tokens := make([]string, n), make([]string, n), make([][16]byte, n)
	claimed, next, since, more := make([]int64, n), make([]int64, n), make([]time.Time, n), make([]bool, n)
	for i, l := range lanes {
		kinds[i], ids[i], tokens[i], claimed[i], since[i] = l.kind, l.id, l.token, l.claimed, l.since
		next[i], more[i] = l.claimed+int64(len(l.run)), len(l.run) == size
	}
	var done int
	if err := pool.QueryRow(ctx, bareCompleteSQL, kinds, ids, tokens, claimed, next, since, more).Scan(&done); err != nil {
		return err
	}
	if done != n {
		return fmt.Errorf("%d of %d leases were lost", n-done, n)
	}
	return nil
}
