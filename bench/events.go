package main

import (
	"context"
	"fmt"
	"time"
)

// partitions is how many live ones the table of envelopes has, twice as many as the first migration makes.
const partitions = 8

// backlog fills the outbox of one database with committed events that nobody has delivered: depth of them, spread over so many aggregates.
type backlog struct {
	*fixture
	events, aggregates int
	base               time.Time // of the first event; the others follow by 10 µs each
}

// fill records the events, as appends of so many aggregates at once would have.
func (b *backlog) fill(ctx context.Context) error {
	b.base = time.Now().Add(-time.Minute)
	if _, err := b.bare.Exec(ctx, `truncate caskeleton.outbox_event, caskeleton.outbox_identity`); err != nil {
		return err
	}
	if err := b.partition(ctx); err != nil {
		return err
	}
	_, err := b.bare.Exec(ctx, `insert into caskeleton.outbox_event (aggregatetype, aggregateid, recorded_at, sequence, id, type, schema_version, content_type,
		headers, payload, occurred_at, epoch)
		select 'order', 'a' || i % $2::int, $3::timestamptz + i * interval '10 us', i / $2::int + 1, gen_random_uuid(), 'order.placed', 1, 'application/json',
		'{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}', convert_to(repeat('x', 200), 'UTF8'), $3::timestamptz, 1
		from generate_series(0, $1::int - 1) i`, b.events, b.aggregates, b.base)
	if err != nil {
		return err
	}
	for _, sql := range []string{
		`vacuum (analyze) caskeleton.outbox_event`,
		`truncate caskeleton.outbox_counter, caskeleton.outbox_lane`,
		`insert into caskeleton.outbox_counter (aggregatetype, aggregateid, last_sequence, drained_sequence, last_recorded_at)
			select aggregatetype, aggregateid, max(sequence), 0, max(recorded_at) from caskeleton.outbox_event group by 1, 2`,
		`insert into caskeleton.outbox_lane (aggregatetype, aggregateid, next_sequence, next_recorded_at, due)
			select aggregatetype, aggregateid, 1, recorded_at, recorded_at from caskeleton.outbox_event where sequence = 1 order by recorded_at`,
		`drop table if exists bench.outbox_counter, bench.outbox_lane`,
		`create table bench.outbox_counter as table caskeleton.outbox_counter`,
		`create table bench.outbox_lane as select * from caskeleton.outbox_lane order by due`,
		`vacuum (analyze) caskeleton.outbox_counter, caskeleton.outbox_lane`,
	} {
		if _, err := b.bare.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// partition adds weeks of the past, which are empty.
func (b *backlog) partition(ctx context.Context) error {
	var have int
	if err := b.bare.QueryRow(ctx, `select count(*) from pg_inherits where inhparent = 'caskeleton.outbox_event'::regclass`).Scan(&have); err != nil {
		return err
	}
	monday := b.base.UTC().Truncate(24*time.Hour).AddDate(0, 0, -(int(b.base.UTC().Weekday())+6)%7)
	for week := 1; have < partitions; week++ {
		from := monday.AddDate(0, 0, -7*week)
		_, err := b.bare.Exec(ctx, fmt.Sprintf(`create table caskeleton.outbox_event_%s partition of caskeleton.outbox_event for values from ('%s') to ('%s')`,
			from.Format("20060102"), from.Format(time.RFC3339), from.AddDate(0, 0, 7).Format(time.RFC3339)))
		if err != nil {
			return err
		}
		have++
	}
	return nil
}

// rewind makes all events undelivered again. Envelopes never change, so that only counters and lanes are written anew, as fill left them.
func (b *backlog) rewind(ctx context.Context) error {
	for _, table := range []string{"counter", "lane"} {
		for _, sql := range []string{
			`truncate caskeleton.outbox_` + table,
			`insert into caskeleton.outbox_` + table + ` select * from bench.outbox_` + table,
			`vacuum (analyze) caskeleton.outbox_` + table,
		} {
			if _, err := b.bare.Exec(ctx, sql); err != nil {
				return err
			}
		}
	}
	return nil
}

// drained fails where something was left behind.
func (b *backlog) drained(ctx context.Context) error {
	var lanes, behind int
	err := b.bare.QueryRow(ctx, `select (select count(*) from caskeleton.outbox_lane),
		(select count(*) from caskeleton.outbox_counter where drained_sequence < last_sequence)`).Scan(&lanes, &behind)
	if err == nil && lanes+behind > 0 {
		err = fmt.Errorf("%d lanes and %d counters are not drained", lanes, behind)
	}
	return err
}
