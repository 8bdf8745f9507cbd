package pgidempotency

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// Records implements [idempotency.Driver]. Safe for concurrent use.
type Records struct{ db *postgres.DB }

// New returns the records kept in db.
func New(db *postgres.DB) *Records { return &Records{db} }

const recordColumns = `owner, attempt, operation, revision, state, fingerprint, lease_expires_at <= clock_timestamp(), payload`

// claimSQL looks before it inserts: an INSERT that met the update of a Complete would wait for that
// COMMIT. Both branches see one snapshot, so a row that another claim committed meanwhile is in neither.
const claimSQL = `
with made as (
  insert into caskeleton.idempotency_record (scope, key_version, tenant, route, fingerprint, state, owner, attempt, operation, revision,
    lease_expires_at, expires_at, created_at, updated_at)
  select $1::bytea, $2, $3, $4, $5::bytea, 'CLAIMED', $6, 1, $7, 1,
    t.now + $8::bigint * interval '1 microsecond', t.now + $9::bigint * interval '1 microsecond', t.now, t.now
  from (select clock_timestamp() as now) t
  where not exists (select from caskeleton.idempotency_record where scope = $1::bytea)
  on conflict (scope) do nothing
  returning ` + recordColumns + `
)
select true, made.* from made
union all
select false, ` + recordColumns + ` from caskeleton.idempotency_record
where scope = $1 and not exists (select from made)`

const readSQL = `select false, ` + recordColumns + ` from caskeleton.idempotency_record where scope = $1`

// Claim implements idempotency.Driver.
func (r *Records) Claim(ctx context.Context, q idempotency.Request) (idempotency.Record, bool, error) {
	rec, made, err := scan(q.Scope, r.db.QueryRow(ctx, claimSQL, q.Scope[:], q.KeyVersion, q.Tenant, q.Route, q.Fingerprint[:],
		q.Owner, q.Operation, micros(q.Lease), micros(q.Expiry)))
	if err == nil && rec.State == "" {
		rec, made, err = scan(q.Scope, r.db.QueryRow(ctx, readSQL, q.Scope[:]))
	}
	return rec, made, err
}

// scan reads a record; where there is none, its state stays empty.
func scan(scope idempotency.Scope, row pgx.Row) (rec idempotency.Record, made bool, err error) {
	var fingerprint []byte
	err = row.Scan(&made, &rec.Owner, &rec.Attempt, &rec.Operation, &rec.Revision, &rec.State, &fingerprint, &rec.LeaseExpired, &rec.Payload)
	if errors.Is(err, pgx.ErrNoRows) {
		return idempotency.Record{}, false, nil
	}
	rec.Scope = scope
	copy(rec.Fingerprint[:], fingerprint)
	return rec, made, err
}

// holder is the predicate that names all of a claim. All its types are those that every driver of a joined transaction can send.
const holder = `scope = $1 and state = 'CLAIMED' and owner = $2 and attempt = $3::bigint and operation = $4 and revision = $5`

func holderArgs(c idempotency.Claim, more ...any) []any {
	return append([]any{c.Scope[:], c.Owner, c.Attempt, c.Operation, c.Revision}, more...)
}

// takeOverSQL locks first and reads the clock afterwards: a time read before a wait would be the past.
const takeOverSQL = `
with held as materialized (
  select scope from caskeleton.idempotency_record where ` + holder + ` for update skip locked
)
update caskeleton.idempotency_record r
set owner = $6, attempt = r.attempt + 1, operation = $7, revision = r.revision + 1,
  lease_expires_at = clock_timestamp() + $8::bigint * interval '1 microsecond',
  expires_at = clock_timestamp() + $9::bigint * interval '1 microsecond', updated_at = clock_timestamp()
from held
where r.scope = held.scope and r.lease_expires_at <= clock_timestamp()
returning r.attempt, r.revision`

// TakeOver implements idempotency.Driver.
func (r *Records) TakeOver(ctx context.Context, held idempotency.Claim, q idempotency.Request) (idempotency.Claim, bool, error) {
	c := idempotency.Claim{Scope: held.Scope, Owner: q.Owner, Operation: q.Operation}
	err := r.db.QueryRow(ctx, takeOverSQL, holderArgs(held, q.Owner, q.Operation, micros(q.Lease), micros(q.Expiry))...).Scan(&c.Attempt, &c.Revision)
	if errors.Is(err, pgx.ErrNoRows) {
		return idempotency.Claim{}, false, nil
	}
	return c, err == nil, err
}

const startSQL = `select 1 from caskeleton.idempotency_record where ` + holder + ` for update`

// Start implements idempotency.Driver.
func (r *Records) Start(ctx context.Context, t *tx.Tx, c idempotency.Claim) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	return changed(ctx, q, startSQL, holderArgs(c)...)
}

const answerSQL = `
update caskeleton.idempotency_record
set state = $6, payload = $7, revision = revision + 1, updated_at = clock_timestamp()
where ` + holder

// Complete implements idempotency.Driver.
func (r *Records) Complete(ctx context.Context, t *tx.Tx, c idempotency.Claim, payload []byte) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	if err := changed(ctx, q, answerSQL, holderArgs(c, string(idempotency.Completed), payload)...); err != nil {
		return err
	}
	if err := postgres.AddWitness(t, completed(c)); !errors.Is(err, tx.ErrJoined) {
		return err
	}
	return nil
}

// Fail implements idempotency.Driver.
func (r *Records) Fail(ctx context.Context, c idempotency.Claim, payload []byte) error {
	return changed(ctx, r.db, answerSQL, holderArgs(c, string(idempotency.Failed), payload)...)
}

const releaseSQL = `delete from caskeleton.idempotency_record where ` + holder

// Release implements idempotency.Driver.
func (r *Records) Release(ctx context.Context, c idempotency.Claim) error {
	return changed(ctx, r.db, releaseSQL, holderArgs(c)...)
}

// changed runs a statement on the one row of a claim.
func changed(ctx context.Context, q postgres.DBTX, sql string, args ...any) error {
	tag, err := q.Exec(ctx, sql, args...)
	if err == nil && tag.RowsAffected() != 1 {
		return idempotency.ErrStale
	}
	return err
}

func micros(d time.Duration) int64 { return d.Microseconds() }
