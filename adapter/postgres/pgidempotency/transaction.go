package pgidempotency

import (
	"context"
	"errors"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

const startSQL = `select 1 from caskeleton.idempotency_record where ` + holder + ` for update`

// startBesideSQL also tells whether another scope has a record. It has a later snapshot than the claim, and so does whoever claimed the
// other: one of the two sees both. The scopes come one behind the other, since drivers of joined transactions can send no arrays.
const startBesideSQL = `
select exists (
  select from caskeleton.idempotency_record o
  where o.scope = any(array(select substring($6::bytea from 1 + 32 * i for 32) from generate_series(0, octet_length($6::bytea) / 32 - 1) i)))
from caskeleton.idempotency_record where ` + holder + ` for update`

// Start implements idempotency.Driver.
func (r *Records) Start(ctx context.Context, t *tx.Tx, c idempotency.Claim, others []idempotency.Scope) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	if len(others) == 0 {
		return changed(ctx, q, startSQL, holderArgs(c)...)
	}
	var joined []byte
	for _, s := range others {
		joined = append(joined, s[:]...)
	}
	var rival bool
	held, err := one(q.QueryRow(ctx, startBesideSQL, holderArgs(c, joined)...), &rival)
	switch {
	case err != nil:
		return err
	case !held:
		return idempotency.ErrStale
	case rival:
		return idempotency.ErrRival
	}
	return nil
}

// kept has an answer stay for as long, from now on, as it was to from the claim on: however long it took, a repeat finds it.
const kept = `clock_timestamp() + (expires_at - created_at)`

const completeSQL = `
update caskeleton.idempotency_record
set state = 'COMPLETED', payload = $6, payload_ref = $7, expires_at = ` + kept + `, revision = revision + 1, updated_at = clock_timestamp()
where ` + holder

const completeLargeSQL = `
with answered as (
  update caskeleton.idempotency_record
  set state = 'COMPLETED', payload_ref = 'table', expires_at = ` + kept + `, revision = revision + 1, updated_at = clock_timestamp()
  where ` + holder + `
  returning scope
)
insert into caskeleton.idempotency_response (scope, body) select scope, $6::bytea from answered`

// Complete implements idempotency.Driver.
func (r *Records) Complete(ctx context.Context, t *tx.Tx, c idempotency.Claim, a idempotency.Answer) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	if a.Large {
		err = changed(ctx, q, completeLargeSQL, holderArgs(c, a.Payload)...)
	} else {
		err = changed(ctx, q, completeSQL, holderArgs(c, a.Payload, refOf(a))...)
	}
	if err != nil {
		return err
	}
	if err := postgres.AddWitness(t, completed(c)); !errors.Is(err, tx.ErrJoined) {
		return err
	}
	return nil
}

// refOf is NULL where there is none.
func refOf(a idempotency.Answer) any {
	if a.Ref == "" {
		return nil
	}
	return string(a.Ref)
}
