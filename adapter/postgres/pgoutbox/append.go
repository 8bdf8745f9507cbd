package pgoutbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// lockRowSQL stands in for lockSQL where the snapshot is older than the statement: a mode that has changed since is a serialization
// failure, not an old mode that looks valid.
const lockRowSQL = `select singleton from caskeleton.outbox_control where singleton for share`

// appendSQL takes the aggregates ($1) in the order in which their counters are to be locked, the events ($2) and all payloads in one
// piece ($3). Types are those that every driver of a joined transaction can send.
//
// The counter is locked until commit. Its time is read behind that lock. In external mode no lane is made, and a drained aggregate
// stays drained: excluded.drained_sequence is the number of events then, else 0.
const appendSQL = `
with control as materialized (
  select mode, epoch from caskeleton.outbox_control where singleton and authority = 'v2'
), aggregate as materialized (
  select * from jsonb_to_recordset($1::jsonb) as a (n int, aggregatetype text, aggregateid text, head_type text, events bigint)
), counter as (
  insert into caskeleton.outbox_counter as c (aggregatetype, aggregateid, last_sequence, drained_sequence, last_recorded_at)
  select a.aggregatetype, a.aggregateid, a.events, case when control.mode = 'external' then a.events else 0 end, clock_timestamp()
  from aggregate a, control order by a.n
  on conflict (aggregatetype, aggregateid) do update set
    last_sequence = c.last_sequence + excluded.last_sequence,
    drained_sequence = case when c.drained_sequence = c.last_sequence then c.drained_sequence + excluded.drained_sequence else c.drained_sequence end,
    last_recorded_at = greatest(clock_timestamp(), c.last_recorded_at)
  returning aggregatetype, aggregateid, last_sequence, drained_sequence, last_recorded_at
), base as materialized (
  select a.n, aggregatetype, aggregateid, a.head_type, c.last_sequence - a.events as last_before, c.drained_sequence, c.last_recorded_at
  from counter c join aggregate a using (aggregatetype, aggregateid)
), lane as (
  insert into caskeleton.outbox_lane (aggregatetype, aggregateid, next_sequence, next_recorded_at, head_type, due)
  select aggregatetype, aggregateid, last_before + 1, last_recorded_at, head_type, clock_timestamp()
  from base where drained_sequence = last_before
), event as materialized (
  select * from jsonb_to_recordset($2::jsonb) as e (aggregate int, n bigint, id uuid, type text, schema_version int, aggregate_version bigint,
    content_type text, headers jsonb, occurred_at timestamptz, start int, length int)
), identity as (
  insert into caskeleton.outbox_identity (id, recorded_at)
  select e.id, b.last_recorded_at from event e join base b on b.n = e.aggregate order by e.id
)
insert into caskeleton.outbox_event (aggregatetype, aggregateid, recorded_at, sequence, id, type, schema_version, aggregate_version,
  content_type, headers, payload, occurred_at, epoch)
select b.aggregatetype, b.aggregateid, b.last_recorded_at, b.last_before + e.n, e.id, e.type, e.schema_version, e.aggregate_version,
  e.content_type, e.headers, substring($3::bytea from e.start for e.length), coalesce(e.occurred_at, b.last_recorded_at), control.epoch
from event e join base b on b.n = e.aggregate, control
returning id::text, recorded_at`

// aggregateParam and eventParam are the elements of $1 and $2. A payload travels beside them, as bytes: as base64 inside the JSON, 20
// events of 10 kB took 2.3 times as long, and small ones the same.
type aggregateParam struct {
	N        int    `json:"n"`
	Type     string `json:"aggregatetype"`
	ID       string `json:"aggregateid"`
	HeadType string `json:"head_type"`
	Events   int64  `json:"events"`
}

type eventParam struct {
	Aggregate        int               `json:"aggregate"`
	N                int64             `json:"n"` // within the aggregate, from 1
	ID               string            `json:"id"`
	Type             string            `json:"type"`
	SchemaVersion    int               `json:"schema_version"`
	AggregateVersion *int64            `json:"aggregate_version"`
	ContentType      string            `json:"content_type"`
	Headers          map[string]string `json:"headers"`
	OccurredAt       *time.Time        `json:"occurred_at"`
	Start            int               `json:"start"` // of the payload, from 1
	Length           int               `json:"length"`
}

// Append implements [outbox.Driver].
func (d *Driver) Append(ctx context.Context, t *tx.Tx, events []outbox.Event) error {
	const op = "pgoutbox.Append"
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	batcher, ok := q.(postgres.Batcher)
	if !ok {
		return fault.Text("pgoutbox: the transaction cannot send a batch; begin it with a runner of adapter/postgres")
	}
	args, err := appendArgs(events)
	if err != nil {
		return err
	}
	b := &pgx.Batch{}
	if t.Isolation() == tx.ReadCommitted {
		b.Queue(lockSQL)
	} else {
		b.Queue(lockRowSQL)
	}
	b.Queue(appendSQL, args...)
	results := batcher.SendBatch(ctx, b)
	defer func() { _ = results.Close() }()
	if _, err := results.Exec(); err != nil {
		return err
	}
	id, at, n, err := recorded(results.Query())
	if err != nil {
		return appendError(op, err)
	}
	if err := results.Close(); err != nil {
		return err
	}
	switch n {
	case len(events):
		if err := postgres.AddWitness(t, identity(id, at)); !errors.Is(err, tx.ErrJoined) {
			return err
		}
		return nil
	case 0:
		return appendV1(ctx, op, q, args, int64(len(events)))
	default:
		return notRecorded(op, int64(n), int64(len(events)))
	}
}

// appendV1 records events in the legacy table, which has the authority, for v2 recorded none. The lock that the append took holds it there.
func appendV1(ctx context.Context, op string, q postgres.DBTX, args []any, want int64) error {
	var v1 bool
	if err := q.QueryRow(ctx, `select exists (select from caskeleton.outbox_control where singleton and authority = 'v1')`).Scan(&v1); err != nil {
		return err
	}
	if !v1 {
		return notRecorded(op, 0, want)
	}
	var n int64
	err := q.QueryRow(ctx, `select caskeleton.outbox_append_v1($1::jsonb, $2::jsonb, $3::bytea)`, args...).Scan(&n)
	if d, ok := errors.AsType[*postgres.Diagnostic](err); ok && d.SQLSTATE == "23505" {
		return fault.New(fault.OutboxEventDuplicate, op, err)
	}
	if err == nil && n != want {
		err = notRecorded(op, n, want)
	}
	return err
}

func notRecorded(op string, n, want int64) error {
	return fault.Textf("%s: %d of %d events were recorded: caskeleton.outbox_control has lost its row; roll back, and restore it", op, n, want)
}

// recorded reads the first of the rows, which is enough to know them by, and counts them.
func recorded(rows pgx.Rows, err error) (id string, at time.Time, n int, _ error) {
	if err != nil {
		return "", time.Time{}, 0, err
	}
	defer rows.Close()
	for ; rows.Next(); n++ {
		if n > 0 {
			continue
		}
		if err := rows.Scan(&id, &at); err != nil {
			return "", time.Time{}, 0, err
		}
	}
	rows.Close()
	return id, at, n, rows.Err()
}

func appendArgs(events []outbox.Event) ([]any, error) {
	at := map[outbox.Lane]int{} // index into aggregates
	var aggregates []aggregateParam
	for _, e := range events {
		l := e.Lane()
		i, ok := at[l]
		if !ok {
			i = len(aggregates)
			at[l] = i
			aggregates = append(aggregates, aggregateParam{Type: l.AggregateType, ID: l.AggregateID, HeadType: e.Type})
		}
		aggregates[i].Events++
	}
	slices.SortFunc(aggregates, func(a, b aggregateParam) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.ID, b.ID))
	})
	for i := range aggregates {
		aggregates[i].N = i
		at[outbox.Lane{AggregateType: aggregates[i].Type, AggregateID: aggregates[i].ID}] = i
	}
	counts := make([]int64, len(aggregates))
	params := make([]eventParam, len(events))
	var payloads bytes.Buffer
	for i, e := range events {
		a := at[e.Lane()]
		counts[a]++
		p := eventParam{
			Aggregate: a, N: counts[a], ID: e.ID, Type: e.Type, SchemaVersion: e.SchemaVersion, ContentType: e.ContentType,
			Headers: e.Headers, Start: payloads.Len() + 1, Length: len(e.Payload),
		}
		if p.Headers == nil {
			p.Headers = map[string]string{}
		}
		if e.AggregateVersion != 0 {
			p.AggregateVersion = &e.AggregateVersion
		}
		if !e.OccurredAt.IsZero() {
			utc := e.OccurredAt.UTC()
			p.OccurredAt = &utc
		}
		payloads.Write(e.Payload)
		params[i] = p
	}
	first, err := json.Marshal(aggregates)
	if err != nil {
		return nil, fault.Textf("pgoutbox.Append: %w", err)
	}
	second, err := json.Marshal(params)
	if err != nil {
		return nil, fault.Textf("pgoutbox.Append: %w", err)
	}
	return []any{string(first), string(second), payloads.Bytes()}, nil
}

// appendError gives the two failures that are the outbox's own their codes.
func appendError(op string, err error) error {
	d, ok := errors.AsType[*postgres.Diagnostic](err)
	switch {
	case !ok || d.Schema != "caskeleton":
		return err
	case d.SQLSTATE == "23505" && d.Table == "outbox_identity":
		return fault.New(fault.OutboxEventDuplicate, op, err)
	case d.SQLSTATE == "23514" && d.Table == "outbox_event" && d.Constraint == "": // no partition took the row
		return fault.New(fault.OutboxPartitionMissing, op, err)
	}
	return err
}
