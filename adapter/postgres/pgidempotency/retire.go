package pgidempotency

import (
	"context"
	"time"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

const retireSQL = `delete from caskeleton.idempotency_key where version = $1`

// ofVersionSQL looks at some records, the oldest first: among those are a former version's, if there are any. To look at all in one
// statement would take longer than one may, where there are many.
const ofVersionSQL = `
with seen as materialized (
  select key_version, created_at, scope from caskeleton.idempotency_record
  where (created_at, scope) > ($2::timestamptz, $3::bytea)
  order by created_at, scope limit $4
)
select coalesce((select bool_or(key_version = $1) from seen), false), (select count(*) from seen), last.created_at, last.scope
from (select 1) x left join lateral (select created_at, scope from seen order by created_at desc, scope desc limit 1) last on true`

const retireBatch = 10_000

// Retire implements idempotency.Driver.
func (r *Records) Retire(ctx context.Context, t *tx.Tx, version string) (bool, error) {
	q, err := postgres.Querier(t)
	if err != nil {
		return false, err
	}
	for after, seen := (idempotency.Cursor{}), retireBatch; seen == retireBatch; {
		var met bool
		var scope []byte
		var created *time.Time
		err := q.QueryRow(ctx, ofVersionSQL, version, after.Created, after.Scope[:], int64(retireBatch)).Scan(&met, &seen, &created, &scope)
		if err != nil || met {
			return false, err
		}
		if created != nil {
			after.Created = *created
			copy(after.Scope[:], scope)
		}
	}
	tag, err := q.Exec(ctx, retireSQL, version)
	return tag.RowsAffected() == 1, err
}
