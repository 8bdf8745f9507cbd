package pgoutbox

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/outbox"
)

// mine locks the lanes that are still held by the claims in x: who lost one of the parts has lost the lane.
const mine = `
mine as materialized (
  select x.* from x join caskeleton.outbox_lane l on l.aggregatetype = x.aggregatetype and l.aggregateid = x.aggregateid
  where l.owner = x.owner and l.token::text = x.token and l.attempt = x.attempt and l.next_sequence = x.claimed
    and x.epoch = (select epoch from caskeleton.outbox_control where singleton)
  order by l.aggregatetype, l.aggregateid for update of l
)`

// settleSQL moves lanes past what was acknowledged. A lane whose run was all that its aggregate had is drained: it is removed, under
// the lock of its counter. Where an append holds that lock, the lane stays and is looked at again soon, then ever later; where more was
// committed meanwhile, it is due at once. attempt counts claims of the head: one that failed behind an acknowledged event had its first.
const settleSQL = `
with x as materialized (
  select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::timestamptz[],
    $10::text[], $11::boolean[], $12::text[], $13::bigint[])
  as x (aggregatetype, aggregateid, owner, token, attempt, epoch, claimed, next, recorded_at, head_type, keep, failure, retry)
), ` + mine + `, counter as materialized (
  select c.aggregatetype, c.aggregateid, c.last_sequence
  from mine m join caskeleton.outbox_counter c on c.aggregatetype = m.aggregatetype and c.aggregateid = m.aggregateid
  where not m.keep for update of c skip locked
), drained as (
  update caskeleton.outbox_counter c set drained_sequence = c.last_sequence
  from mine m join counter k on k.aggregatetype = m.aggregatetype and k.aggregateid = m.aggregateid
  where c.aggregatetype = k.aggregatetype and c.aggregateid = k.aggregateid and m.next = k.last_sequence + 1
  returning c.aggregatetype, c.aggregateid
), removed as (
  delete from caskeleton.outbox_lane l using drained d where l.aggregatetype = d.aggregatetype and l.aggregateid = d.aggregateid
), kept as (
  update caskeleton.outbox_lane l
  set next_sequence = m.next, next_recorded_at = m.recorded_at, head_type = nullif(m.head_type, ''), owner = null, token = null,
    attempt = case when m.failure <> '' then case when m.next > m.claimed then 1 else l.attempt end
                   when m.next > m.claimed then 0 else l.attempt - 1 end,
    last_error = case when m.failure <> '' then m.failure when m.next = m.claimed then l.last_error end,
    looks = case when m.keep or m.free then 0 when m.next > m.claimed then 1 else least(l.looks + 1, 20) end,
    due = case when l.hold is not null then null
               when m.failure <> '' then clock_timestamp() + m.retry * interval '1 microsecond'
               when m.keep or m.free then clock_timestamp()
               when m.next > m.claimed then clock_timestamp() + interval '2 ms'
               else clock_timestamp() + least(interval '100 ms', interval '2 ms' * 2 ^ l.looks) end
  from (
    select m.*, k.last_sequence is not null as free
    from mine m left join counter k on k.aggregatetype = m.aggregatetype and k.aggregateid = m.aggregateid
    where not exists (select from drained d where d.aggregatetype = m.aggregatetype and d.aggregateid = m.aggregateid)
  ) m
  where l.aggregatetype = m.aggregatetype and l.aggregateid = m.aggregateid
)
select aggregatetype, aggregateid from mine`

// Settle implements [outbox.Driver].
func (d *Driver) Settle(ctx context.Context, settlements []outbox.Settlement) (lost []outbox.Lane, err error) {
	n := len(settlements)
	h := newHolders(n)
	next, recorded, heads := make([]int64, n), make([]time.Time, n), make([]string, n)
	keep, failures, retry := make([]bool, n), make([]string, n), make([]int64, n)
	for i, s := range settlements {
		c := s.Claim
		if s.Acked < 0 || s.Acked > len(c.Run) {
			return nil, fault.Textf("pgoutbox: a settlement acknowledges %d of %d events", s.Acked, len(c.Run))
		}
		h.set(i, c)
		next[i], recorded[i], failures[i], retry[i] = c.Next+int64(s.Acked), c.Since, s.Failure, postgres.Micros(s.Retry)
		if s.Acked > 0 {
			recorded[i] = c.Run[s.Acked-1].RecordedAt
		}
		if s.Acked < len(c.Run) {
			heads[i] = c.Run[s.Acked].Type
		}
		keep[i] = c.More || c.Gap || s.GiveBack || failures[i] != "" || s.Acked < len(c.Run)
	}
	return d.change(ctx, settleSQL, h, next, recorded, heads, keep, failures, retry)
}

// renewSQL measures the new lease from now.
const renewSQL = `
with x as materialized (
  select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
  as x (aggregatetype, aggregateid, owner, token, attempt, epoch, claimed)
), ` + mine + `
update caskeleton.outbox_lane l set due = clock_timestamp() + $8::bigint * interval '1 microsecond'
from mine m where l.aggregatetype = m.aggregatetype and l.aggregateid = m.aggregateid
returning l.aggregatetype, l.aggregateid`

// Renew implements [outbox.Driver].
func (d *Driver) Renew(ctx context.Context, claims []outbox.Claim, lease time.Duration) (lost []outbox.Lane, err error) {
	h := newHolders(len(claims))
	for i, c := range claims {
		h.set(i, c)
	}
	return d.change(ctx, renewSQL, h, postgres.Micros(lease))
}

// holders are claims, as the arrays that name all of each.
type holders struct {
	types, ids, owners, tokens []string
	attempts, epochs, claimed  []int64
}

func newHolders(n int) holders {
	return holders{make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]int64, n), make([]int64, n), make([]int64, n)}
}

func (h holders) set(i int, c outbox.Claim) {
	h.types[i], h.ids[i], h.owners[i], h.tokens[i] = c.AggregateType, c.AggregateID, c.Owner, c.Token
	h.attempts[i], h.epochs[i], h.claimed[i] = int64(c.Attempt), c.Epoch, c.Next
}

// change runs a statement that returns the lanes of the claims which it found still held, and returns the others.
func (d *Driver) change(ctx context.Context, sql string, h holders, more ...any) (lost []outbox.Lane, err error) {
	if len(h.types) == 0 {
		return nil, nil
	}
	held := make(map[outbox.Lane]bool, len(h.types))
	args := append([]any{h.types, h.ids, h.owners, h.tokens, h.attempts, h.epochs, h.claimed}, more...)
	err = d.relay(ctx, sql, args, func(row pgx.Row) error {
		var l outbox.Lane
		err := row.Scan(&l.AggregateType, &l.AggregateID)
		held[l] = true
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range h.types {
		if l := (outbox.Lane{AggregateType: h.types[i], AggregateID: h.ids[i]}); !held[l] {
			lost = append(lost, l)
		}
	}
	return lost, nil
}
