package pgidempotency

import (
	"context"
	"time"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// executeSQL locks first and reads the clock afterwards. As for startBesideSQL, its snapshot is later than the claim.
const executeSQL = `
with rival as materialized (
  select exists (select from caskeleton.idempotency_record where scope = any($6::bytea[])) as met
), held as materialized (
  select scope from caskeleton.idempotency_record where ` + holder + ` for update
), moved as (
  update caskeleton.idempotency_record r
  set state = 'EXECUTING', executing_since = clock_timestamp(), revision = r.revision + 1,
    lease_expires_at = clock_timestamp() + $7::bigint * interval '1 microsecond', updated_at = clock_timestamp()
  from held, rival
  where r.scope = held.scope and not rival.met
  returning r.revision
)
select (select met from rival), coalesce((select revision from moved), 0)`

// Execute implements idempotency.Driver.
func (r *Records) Execute(ctx context.Context, c idempotency.Claim, lease time.Duration, others []idempotency.Scope) (idempotency.Claim, error) {
	var rival bool
	var revision int64
	err := r.db.QueryRow(ctx, executeSQL, holderArgs(c, list(others...), postgres.Micros(lease))...).Scan(&rival, &revision)
	switch {
	case err != nil:
		return idempotency.Claim{}, err
	case rival:
		return idempotency.Claim{}, idempotency.ErrRival
	case revision == 0:
		return idempotency.Claim{}, idempotency.ErrStale
	}
	c.Revision = revision
	return c, nil
}

const renewSQL = `
with held as materialized (
  select scope from caskeleton.idempotency_record where ` + owned + ` and state = 'EXECUTING' for update
)
update caskeleton.idempotency_record r
set lease_expires_at = clock_timestamp() + $6::bigint * interval '1 microsecond', updated_at = clock_timestamp()
from held where r.scope = held.scope`

// Renew implements idempotency.Driver.
func (r *Records) Renew(ctx context.Context, c idempotency.Claim, lease time.Duration) error {
	return changed(ctx, r.db, renewSQL, holderArgs(c, postgres.Micros(lease))...)
}

// abandonSQL reads the clock and the lease as takeOverSQL does.
const abandonSQL = `
with held as materialized (
  select scope, lease_expires_at from caskeleton.idempotency_record where ` + owned + ` and state = 'EXECUTING' for update
)
update caskeleton.idempotency_record r
set state = 'ABANDONED', revision = r.revision + 1, updated_at = clock_timestamp()
from held where r.scope = held.scope and held.lease_expires_at <= clock_timestamp()`

// Abandon implements idempotency.Driver.
func (r *Records) Abandon(ctx context.Context, c idempotency.Claim) (bool, error) {
	tag, err := r.db.Exec(ctx, abandonSQL, holderArgs(c)...)
	return tag.RowsAffected() == 1, err
}

// What an ended operation leaves: a record that is not executing any more, unless it is ABANDONED.
const settled = `
  set state = $7, expires_at = case when $7 = 'ABANDONED' then expires_at else ` + kept + ` end, payload = $8, payload_ref = $9, revision = revision + 1, updated_at = clock_timestamp(),
    executing_since = case when $7 = 'ABANDONED' then executing_since end
  where ` + owned + ` and state = $6`

const settleSQL = `update caskeleton.idempotency_record` + settled

const settleLargeSQL = `
with answered as (
  update caskeleton.idempotency_record` + settled + `
  returning scope
)
insert into caskeleton.idempotency_response (scope, body) select scope, $10::bytea from answered`

const releaseSQL = `delete from caskeleton.idempotency_record where ` + owned + ` and state = $6`

// Settle implements idempotency.Driver.
func (r *Records) Settle(ctx context.Context, c idempotency.Claim, from, to idempotency.State, a idempotency.Answer) error {
	return settle(ctx, r.db, c, from, to, a)
}

// Reconcile implements idempotency.Driver.
func (r *Records) Reconcile(ctx context.Context, t *tx.Tx, c idempotency.Claim, to idempotency.State, a idempotency.Answer) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	return settle(ctx, q, c, idempotency.Abandoned, to, a)
}

func settle(ctx context.Context, q postgres.DBTX, c idempotency.Claim, from, to idempotency.State, a idempotency.Answer) error {
	args := holderArgs(c, string(from))
	switch {
	case to == "":
		return changed(ctx, q, releaseSQL, args...)
	case a.Large:
		return changed(ctx, q, settleLargeSQL, append(args, string(to), nil, "table", a.Payload)...)
	}
	return changed(ctx, q, settleSQL, append(args, string(to), a.Payload, refOf(a))...)
}
