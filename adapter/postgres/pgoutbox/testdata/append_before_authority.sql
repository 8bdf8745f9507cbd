-- The append of the release before outbox-storage 00002, which runs beside this one while instances are replaced.
with control as materialized (
  select mode, epoch from caskeleton.outbox_control where singleton
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
