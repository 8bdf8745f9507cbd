package pgaudit

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/audit"
	"caskeleton.dev/tx"
)

// Actions implements [audit.Driver] in caskeleton.operator_action of the stream "core", whose rows nobody changes or deletes. Safe for concurrent
// use.
type Actions struct{ db *postgres.DB }

// NewActions returns the actions kept in db.
func NewActions(db *postgres.DB) *Actions { return &Actions{db} }

// recordSQL takes text alone, which every driver of a joined transaction can send.
const recordSQL = `
insert into caskeleton.operator_action (operator, verb, kind, subject, filter, reason, changed, before, after)
values ($1, $2, $3, nullif($4::text, ''), nullif($5::text, '')::jsonb, $6, $7::bigint, nullif($8::text, '')::jsonb, nullif($9::text, '')::jsonb)`

// Record implements [audit.Driver].
func (a *Actions) Record(ctx context.Context, t *tx.Tx, act audit.Action) error {
	q, err := postgres.Querier(t)
	if err != nil {
		return err
	}
	_, err = q.Exec(ctx, recordSQL, act.Operator, act.Verb, act.Kind, act.Subject, string(act.Filter), act.Reason, act.Changed, string(act.Before), string(act.After))
	return err
}

const ofSQL = `
select acted_at, operator, verb, kind, coalesce(subject, ''), filter::text, reason, changed, before::text, after::text
from caskeleton.operator_action where kind = $1 and subject = $2 order by id desc limit $3`

// Of implements [audit.Driver].
func (a *Actions) Of(ctx context.Context, kind, subject string, limit int) ([]audit.Entry, error) {
	rows, err := a.db.Query(ctx, ofSQL, kind, subject, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e audit.Entry, err error) {
		var filter, before, after *string
		err = row.Scan(&e.At, &e.Operator, &e.Verb, &e.Kind, &e.Subject, &filter, &e.Reason, &e.Changed, &before, &after)
		e.Filter, e.Before, e.After = raw(filter), raw(before), raw(after)
		return e, err
	})
}

// raw is nil for NULL.
func raw(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}
