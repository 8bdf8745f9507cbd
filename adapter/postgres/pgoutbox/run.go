package pgoutbox

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/outbox"
)

// readSQL reads the runs of lanes, and how far their aggregates have committed, in one snapshot: an event below that which is not
// there is missing. It is newer than the claims, so a lane without events has none.
//
// recorded_at leaves old partitions out; with sequence the scan of the index begins at the head itself, also where thousands were recorded
// at one time. The limits keep the planner from turning the look-ups of one lane into joins of all.
const readSQL = `
select r.n, coalesce(c.last_sequence, 0), e.sequence, e.recorded_at, e.id::text, e.type, e.schema_version, e.aggregate_version, e.content_type,
  e.headers, e.payload, e.occurred_at
from unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[]) with ordinality as r (aggregatetype, aggregateid, sequence, recorded_at, n)
left join lateral (
  select last_sequence from caskeleton.outbox_counter
  where aggregatetype = r.aggregatetype and aggregateid = r.aggregateid limit 1
) c on true
left join lateral (
  select sequence, recorded_at, id, type, schema_version, aggregate_version, content_type, headers, payload, occurred_at
  from caskeleton.outbox_event
  where aggregatetype = r.aggregatetype and aggregateid = r.aggregateid and recorded_at >= r.recorded_at
    and sequence >= r.sequence
  order by recorded_at, sequence limit $5::bigint
) e on true`

// read fills the runs of claims.
func (d *Driver) read(ctx context.Context, claims []outbox.Claim, size int) error {
	types, ids := make([]string, len(claims)), make([]string, len(claims))
	next, since := make([]int64, len(claims)), make([]time.Time, len(claims))
	for i, c := range claims {
		types[i], ids[i], next[i], since[i] = c.AggregateType, c.AggregateID, c.Next, c.Since
	}
	last := make([]int64, len(claims))
	err := d.relay(ctx, readSQL, []any{types, ids, next, since, size}, func(row pgx.Row) error { return readEvent(row, claims, last) })
	if err != nil {
		return err
	}
	for i := range claims {
		c := &claims[i]
		end := c.Next + int64(len(c.Run)) // the first sequence behind the run
		c.Gap = c.Gap || len(c.Run) < size && last[i] >= end
		c.More = !c.Gap && last[i] >= end
	}
	return nil
}

// readEvent reads one row of readSQL. Once an event is missing, those behind it are no part of the run.
func readEvent(row pgx.Row, claims []outbox.Claim, last []int64) error {
	var (
		n                     int
		committed             int64
		sequence, version     *int64
		recorded, occurred    *time.Time
		id, kind, contentType *string
		schema                *int
		headers, payload      []byte
	)
	if err := row.Scan(&n, &committed, &sequence, &recorded, &id, &kind, &schema, &version, &contentType, &headers, &payload, &occurred); err != nil {
		return err
	}
	c := &claims[n-1]
	last[n-1] = committed
	if sequence == nil || c.Gap {
		return nil
	}
	if *sequence != c.Next+int64(len(c.Run)) {
		c.Gap = true
		return nil
	}
	e := outbox.Event{
		ID: *id, Type: *kind, SchemaVersion: *schema, AggregateType: c.AggregateType, AggregateID: c.AggregateID,
		Payload: payload, ContentType: *contentType, OccurredAt: *occurred, Sequence: *sequence, RecordedAt: *recorded,
	}
	if version != nil {
		e.AggregateVersion = *version
	}
	if err := json.Unmarshal(headers, &e.Headers); err != nil {
		return err
	}
	c.Run = append(c.Run, e)
	return nil
}
