-- Its claim.
with control as materialized (
  select epoch from caskeleton.outbox_control where singleton and mode <> 'paused'
), rung as materialized (
  select l.aggregatetype, l.aggregateid, l.due
  from unnest($1::text[], $2::text[]) as r (aggregatetype, aggregateid)
  join caskeleton.outbox_lane l on l.aggregatetype = r.aggregatetype and l.aggregateid = r.aggregateid
  where exists (select from control) and l.owner is null and l.hold is null and l.attempt = 0
  for update of l skip locked
), due as materialized (
  select aggregatetype, aggregateid, due from caskeleton.outbox_lane
  where exists (select from control) and due >= $3::timestamptz and due <= statement_timestamp()
    and (aggregatetype, aggregateid) not in (select aggregatetype, aggregateid from rung)
  order by due limit $4::bigint for update skip locked
)
update caskeleton.outbox_lane l
set owner = $5::text, token = gen_random_uuid(), attempt = l.attempt + 1, due = clock_timestamp() + $6::bigint * interval '1 microsecond'
from (select aggregatetype, aggregateid, due from rung union all select aggregatetype, aggregateid, due from due) c, control
where l.aggregatetype = c.aggregatetype and l.aggregateid = c.aggregateid
returning l.aggregatetype, l.aggregateid, l.owner, l.token::text, l.attempt, control.epoch, l.next_sequence, l.next_recorded_at, c.due
