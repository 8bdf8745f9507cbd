package pgoutbox

import (
	"context"
	"encoding/json"

	"caskeleton.dev/outbox"
)

// publishedSQL reads what lies before the head of an aggregate's lane; without a lane all of it has been delivered.
const publishedSQL = `
select e.sequence, e.recorded_at, e.id::text, e.type, e.schema_version, coalesce(e.aggregate_version, 0), e.content_type, e.headers, e.payload, e.occurred_at
from caskeleton.outbox_event e
where e.aggregatetype = $1 and e.aggregateid = $2
  and e.sequence < coalesce((select l.next_sequence from caskeleton.outbox_lane l where l.aggregatetype = $1 and l.aggregateid = $2), e.sequence + 1)
order by e.recorded_at, e.sequence limit $3::bigint`

// Published returns the first events of an aggregate, limit at most, that brokers have acknowledged, in order. Those whose retention has
// passed are left out.
func (d *Driver) Published(ctx context.Context, l outbox.Lane, limit int) ([]outbox.Event, error) {
	rows, err := d.db.Query(ctx, publishedSQL, l.AggregateType, l.AggregateID, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var events []outbox.Event
	for rows.Next() {
		e := outbox.Event{AggregateType: l.AggregateType, AggregateID: l.AggregateID}
		var headers []byte
		if err := rows.Scan(&e.Sequence, &e.RecordedAt, &e.ID, &e.Type, &e.SchemaVersion, &e.AggregateVersion, &e.ContentType, &headers, &e.Payload, &e.OccurredAt); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(headers, &e.Headers); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, rows.Err()
}
