package pgoutbox

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"caskeleton.dev/outbox"
)

// readSQL reads the runs of lanes, and how far their aggregates have committed, in one snapshot: an event below that which is not
// there is missing. It is newer than the claims, so a lane without events has none.
//
// recorded_at leaves old partitions out; with sequence the scan of the index begins at the head itself, also where thousands were recorded
// at one time. The limits keep the planner from turning the look-ups of one lane into joins of all.
const readSQL = `
select r.n, coalesce(c.last_sequence, 0), e.sequence, e.recorded_at, e.id, e.type, e.schema_version, e.aggregate_version, e.content_type,
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
	err := d.relay(ctx, readSQL, []any{types, ids, next, since, size}, func(row pgx.Row) error { return readEvent(row, claims, last, size) })
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
func readEvent(row pgx.Row, claims []outbox.Claim, last []int64, size int) error {
	var (
		n                  int
		committed          int64
		sequence, version  pgtype.Int8 // values, not pointers: this runs once an event
		recorded, occurred pgtype.Timestamptz
		id                 pgtype.UUID
		kind, contentType  pgtype.Text
		schema             pgtype.Int4
		headers, payload   []byte
	)
	if err := row.Scan(&n, &committed, &sequence, &recorded, &id, &kind, &schema, &version, &contentType, &headers, &payload, &occurred); err != nil {
		return err
	}
	c := &claims[n-1]
	last[n-1] = committed
	if !sequence.Valid || c.Gap {
		return nil
	}
	if sequence.Int64 != c.Next+int64(len(c.Run)) {
		c.Gap = true
		return nil
	}
	if c.Run == nil {
		c.Run = make([]outbox.Event, 0, max(1, min(int64(size), committed-c.Next+1)))
	}
	e := outbox.Event{
		ID: id.String(), Type: kind.String, SchemaVersion: int(schema.Int32), AggregateType: c.AggregateType, AggregateID: c.AggregateID,
		AggregateVersion: version.Int64, Payload: payload, ContentType: contentType.String, OccurredAt: occurred.Time,
		Sequence: sequence.Int64, RecordedAt: recorded.Time,
	}
	if err := json.Unmarshal(headers, &e.Headers); err != nil {
		return err
	}
	c.Run = append(c.Run, e)
	return nil
}
