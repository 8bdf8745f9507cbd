package pgidempotency

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/idempotency"
)

const entryColumns = `r.scope, r.owner, r.attempt, r.operation, r.revision, r.state, r.key_version, r.tenant, r.route, r.lease_expires_at,
  r.lease_expires_at <= clock_timestamp(), r.expires_at, r.created_at, r.updated_at`

const findSQL = `select ` + entryColumns + ` from caskeleton.idempotency_record r where r.scope = any($1::bytea[])` + first

// Find implements idempotency.Driver.
func (r *Records) Find(ctx context.Context, scopes []idempotency.Scope) (idempotency.Entry, bool, error) {
	e, err := scanEntry(r.db.QueryRow(ctx, findSQL, list(scopes...)))
	if errors.Is(err, pgx.ErrNoRows) {
		return idempotency.Entry{}, false, nil
	}
	return e, err == nil, err
}

// Read implements idempotency.Driver.
func (r *Records) Read(ctx context.Context, s idempotency.Scope) (idempotency.Record, bool, error) {
	rec, _, err := scan(r.db.QueryRow(ctx, readSQL, s[:]))
	return rec, rec.State != "", err
}

const (
	listSQL   = `select ` + entryColumns + ` from caskeleton.idempotency_record r where r.state = $1 and (r.created_at, r.scope) > ($2::timestamptz, $3::bytea)`
	listOrder = ` order by r.created_at, r.scope limit $4`
	// executing lets the planner use the index of the few.
	executing = ` and r.executing_since is not null`
)

// List implements idempotency.Driver.
func (r *Records) List(ctx context.Context, state idempotency.State, after idempotency.Cursor, limit int) ([]idempotency.Entry, error) {
	sql := listSQL + listOrder
	if state == idempotency.Executing || state == idempotency.Abandoned {
		sql = listSQL + executing + listOrder
	}
	rows, err := r.db.Query(ctx, sql, string(state), after.Created, after.Scope[:], limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (idempotency.Entry, error) { return scanEntry(row) })
}

func scanEntry(row pgx.Row) (e idempotency.Entry, err error) {
	var scope []byte
	err = row.Scan(&scope, &e.Owner, &e.Attempt, &e.Operation, &e.Revision, &e.State, &e.KeyVersion, &e.Tenant, &e.Route, &e.Lease, &e.LeaseExpired,
		&e.Expiry, &e.Created, &e.Updated)
	copy(e.Scope[:], scope)
	return e, err
}

const expireSQL = `
with late as materialized (
  select scope from caskeleton.idempotency_record
  where executing_since is not null and state = 'EXECUTING' and lease_expires_at <= clock_timestamp()
  order by created_at, scope limit $1 for update skip locked
)
update caskeleton.idempotency_record r
set state = 'ABANDONED', revision = r.revision + 1, updated_at = clock_timestamp()
from late where r.scope = late.scope`

// Expire implements idempotency.Driver.
func (r *Records) Expire(ctx context.Context, limit int) (int, error) {
	tag, err := r.db.Exec(ctx, expireSQL, limit)
	return int(tag.RowsAffected()), err
}

const reapSQL = `
with seen as materialized (
  select scope, created_at from caskeleton.idempotency_record
  where (created_at, scope) > ($1::timestamptz, $2::bytea) and created_at <= clock_timestamp() - $3::bigint * interval '1 microsecond'
  order by created_at, scope limit $4
), expired as materialized (
  select r.scope from caskeleton.idempotency_record r join seen using (scope)
  where r.expires_at <= clock_timestamp() and (r.state in ('COMPLETED', 'FAILED') or r.state = 'CLAIMED' and r.lease_expires_at <= clock_timestamp())
  for update of r skip locked
), gone as (
  delete from caskeleton.idempotency_record r using expired where r.scope = expired.scope returning 1
)
select (select count(*) from gone), (select count(*) from seen), last.created_at, last.scope
from (select 1) x left join lateral (select created_at, scope from seen order by created_at desc, scope desc limit 1) last on true`

// Reap implements idempotency.Driver.
func (r *Records) Reap(ctx context.Context, age time.Duration, after idempotency.Cursor, limit int) (deleted int, next idempotency.Cursor, err error) {
	var seen int
	var scope []byte
	var created *time.Time
	err = r.db.QueryRow(ctx, reapSQL, after.Created, after.Scope[:], postgres.Micros(age), limit).Scan(&deleted, &seen, &created, &scope)
	if err != nil || seen < limit {
		return deleted, idempotency.Cursor{}, err
	}
	next.Created = *created
	copy(next.Scope[:], scope)
	return deleted, next, nil
}

const liveSQL = `
select o.ref from unnest($1::text[], $2::bytea[], $3::text[]) o (ref, scope, operation)
join caskeleton.idempotency_record r on r.scope = o.scope
where r.payload_ref = o.ref or r.operation = o.operation and num_nonnulls(r.payload, r.payload_ref) = 0`

// Live implements idempotency.Driver.
func (r *Records) Live(ctx context.Context, refs []idempotency.Ref) ([]idempotency.Ref, error) {
	var names, operations []string
	var scopes [][]byte
	for _, ref := range refs {
		scope, operation, err := ref.Split()
		if err != nil {
			return nil, err
		}
		names, operations, scopes = append(names, string(ref)), append(operations, operation), append(scopes, scope[:])
	}
	rows, err := r.db.Query(ctx, liveSQL, names, scopes, operations)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[idempotency.Ref])
}
