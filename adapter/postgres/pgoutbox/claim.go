package pgoutbox

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/outbox"
)

// claimSQL leases lanes: those that a doorbell named ($1, $2), found by their key, then those that are due ($3 to now, at most $4),
// found in the index on due. One condition for both would let the planner read the table.
//
// Where another relay moved a lane after this statement's snapshot was taken, its row is locked as it is now, and returned so; that is
// why envelopes are read by the next statement.
const claimSQL = `
with control as materialized (
  select epoch from caskeleton.outbox_control where singleton and authority = 'v2' and mode <> 'paused'
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
returning l.aggregatetype, l.aggregateid, l.owner, l.token::text, l.attempt, control.epoch, l.next_sequence, l.next_recorded_at, c.due`

// Claim implements [outbox.Driver]. Rung lanes take at most half of the limit, so that those which only the index knows get their turn;
// the others that were rung are due as well.
func (d *Driver) Claim(ctx context.Context, r outbox.ClaimRequest) ([]outbox.Claim, error) {
	if r.Limit < 1 || r.RunSize < 1 || r.Lease <= 0 || r.Owner == "" {
		return nil, errors.New("pgoutbox: a claim needs an owner, and a limit, a run size and a lease above 0")
	}
	rung := r.Rung[:min(len(r.Rung), (r.Limit+1)/2)]
	types, ids := laneArgs(rung)
	args := []any{types, ids, r.Floor, r.Limit - len(rung), r.Owner, postgres.Micros(r.Lease)}
	var claims []outbox.Claim
	err := d.relay(ctx, claimSQL, args, func(row pgx.Row) error {
		var c outbox.Claim
		err := row.Scan(&c.AggregateType, &c.AggregateID, &c.Owner, &c.Token, &c.Attempt, &c.Epoch, &c.Next, &c.Since, &c.Due)
		claims = append(claims, c)
		return err
	})
	if err != nil || len(claims) == 0 {
		return nil, err
	}
	return claims, d.read(ctx, claims, r.RunSize)
}

func laneArgs(lanes []outbox.Lane) (types, ids []string) {
	types, ids = make([]string, len(lanes)), make([]string, len(lanes))
	for i, l := range lanes {
		types[i], ids[i] = l.AggregateType, l.AggregateID
	}
	return types, ids
}
