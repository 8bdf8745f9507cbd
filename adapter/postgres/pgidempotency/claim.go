package pgidempotency

import (
	"context"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/idempotency"
)

// recordColumns has the answer from beside the record too, if it is there, so that a replay of any size is one statement.
const recordColumns = `r.scope, r.owner, r.attempt, r.operation, r.revision, r.state, r.fingerprint, r.lease_expires_at <= clock_timestamp(),
  case r.payload_ref when 'table' then (select l.body from caskeleton.idempotency_response l where l.scope = r.scope) else r.payload end,
  coalesce(nullif(r.payload_ref, 'table'), '')`

// What a key is found by: its scope, or its scopes under several versions.
const (
	byScope  = `r.scope = $1::bytea`
	byScopes = `r.scope = any($10::bytea[])`
	// first prefers a record that cannot be taken over: of two, a claim beside it never ran.
	first = ` order by r.state = 'CLAIMED', r.created_at limit 1`
)

// A claim looks before it inserts: an INSERT that met the update of a Complete would wait for that
// COMMIT. Both branches see one snapshot, so a row that another claim committed meanwhile is in neither.
const (
	claimInsert = `
with made as (
  insert into caskeleton.idempotency_record as r (scope, key_version, tenant, route, fingerprint, state, owner, attempt, operation, revision,
    lease_expires_at, expires_at, created_at, updated_at)
  select $1::bytea, $2, $3, $4, $5::bytea, 'CLAIMED', $6, 1, $7, 1,
    t.now + $8::bigint * interval '1 microsecond', t.now + $9::bigint * interval '1 microsecond', t.now, t.now
  from (select clock_timestamp() as now) t
  where not exists (select from caskeleton.idempotency_record r where `
	claimReturn = `)
  on conflict (scope) do nothing
  returning ` + recordColumns + `
)
select true, made.* from made
union all
(select false, ` + recordColumns + ` from caskeleton.idempotency_record r where not exists (select from made) and `
	claimSQL      = claimInsert + byScope + claimReturn + byScope + `)`
	claimAmongSQL = claimInsert + byScopes + claimReturn + byScopes + first + `)`
)

const (
	readSQL      = `select false, ` + recordColumns + ` from caskeleton.idempotency_record r where ` + byScope
	readAmongSQL = `select false, ` + recordColumns + ` from caskeleton.idempotency_record r where r.scope = any($1::bytea[])` + first
)

// Claim implements idempotency.Driver.
func (r *Records) Claim(ctx context.Context, q idempotency.Request) (idempotency.Record, bool, error) {
	args := []any{q.Scope[:], q.KeyVersion, q.Tenant, q.Route, q.Fingerprint[:], q.Owner, q.Operation, postgres.Micros(q.Lease), postgres.Micros(q.Expiry)}
	claim, read, key := claimSQL, readSQL, any(q.Scope[:])
	if len(q.Former) > 0 {
		all := append(list(q.Scope), list(q.Former...)...)
		claim, read, key, args = claimAmongSQL, readAmongSQL, all, append(args, all)
	}
	rec, made, err := scan(r.db.QueryRow(ctx, claim, args...))
	if err == nil && rec.State == "" {
		rec, made, err = scan(r.db.QueryRow(ctx, read, key))
	}
	return rec, made, err
}

// scan reads a record; where there is none, its state stays empty.
func scan(row pgx.Row) (rec idempotency.Record, made bool, err error) {
	var scope, fingerprint []byte
	found, err := one(row, &made, &scope, &rec.Owner, &rec.Attempt, &rec.Operation, &rec.Revision, &rec.State, &fingerprint, &rec.LeaseExpired,
		&rec.Payload, &rec.Ref)
	if !found {
		return idempotency.Record{}, false, err
	}
	copy(rec.Scope[:], scope)
	copy(rec.Fingerprint[:], fingerprint)
	return rec, made, nil
}

// takeOverSQL locks first and reads the clock afterwards: a time read before a wait would be the past. The lease is that of the locked row, since
// the row that is joined is as old as the snapshot.
const takeOverSQL = `
with held as materialized (
  select scope, lease_expires_at from caskeleton.idempotency_record where ` + holder + ` for update skip locked
)
update caskeleton.idempotency_record r
set owner = $6, attempt = r.attempt + 1, operation = $7, revision = r.revision + 1,
  lease_expires_at = clock_timestamp() + $8::bigint * interval '1 microsecond',
  expires_at = clock_timestamp() + $9::bigint * interval '1 microsecond', updated_at = clock_timestamp()
from held
where r.scope = held.scope and held.lease_expires_at <= clock_timestamp()
returning r.attempt, r.revision`

// TakeOver implements idempotency.Driver.
func (r *Records) TakeOver(ctx context.Context, held idempotency.Claim, q idempotency.Request) (idempotency.Claim, bool, error) {
	c := idempotency.Claim{Scope: held.Scope, Owner: q.Owner, Operation: q.Operation}
	taken, err := one(r.db.QueryRow(ctx, takeOverSQL, holderArgs(held, q.Owner, q.Operation, postgres.Micros(q.Lease), postgres.Micros(q.Expiry))...), &c.Attempt, &c.Revision)
	if !taken {
		return idempotency.Claim{}, false, err
	}
	return c, true, nil
}
