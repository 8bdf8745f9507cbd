package pginbox

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

// Messages implements [inbox.Driver]. Safe for concurrent use.
type Messages struct{ db *postgres.DB }

var _ inbox.Driver = (*Messages)(nil)

// New returns the messages kept in db.
func New(db *postgres.DB) *Messages { return &Messages{db} }

// claimSQL makes the row as it will be seen, since nobody sees it before the commit.
const claimSQL = `
insert into caskeleton.inbox_message (consumer, message_id, state, received_at, completed_at)
values ($1, $2, 'COMPLETED', clock_timestamp(), clock_timestamp())
on conflict (consumer, message_id) do nothing`

const retrySQL = `
update caskeleton.inbox_message set state = 'COMPLETED', completed_at = clock_timestamp()
where consumer = $1 and message_id = $2 and state = 'RECEIVED'`

// Claim implements [inbox.Driver].
func (s *Messages) Claim(ctx context.Context, t *tx.Tx, consumer, id string) (inbox.Verdict, error) {
	q, err := postgres.Querier(t)
	if err != nil {
		return 0, err
	}
	for _, c := range []struct {
		sql  string
		made inbox.Verdict
	}{{claimSQL, inbox.Fresh}, {retrySQL, inbox.Retried}} {
		tag, err := q.Exec(ctx, c.sql, consumer, id)
		if err != nil {
			return 0, err
		}
		if tag.RowsAffected() == 1 {
			return c.made, nil
		}
	}
	return settled(ctx, q, "pginbox.Claim", consumer, id)
}

const attemptSQL = `
insert into caskeleton.inbox_message as m (consumer, message_id, state, attempts, received_at)
values ($1, $2, 'RECEIVED', 1, clock_timestamp())
on conflict (consumer, message_id) do update set attempts = m.attempts + 1 where m.state = 'RECEIVED'
returning attempts`

// Attempt implements [inbox.Driver].
func (s *Messages) Attempt(ctx context.Context, consumer, id string) (int, error) {
	var n int
	err := s.db.QueryRow(ctx, attemptSQL, consumer, id).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

const parkSQL = `
insert into caskeleton.inbox_message as m (consumer, message_id, state, attempts, received_at, parked_at, reason,
  type, aggregate_type, aggregate_id, sequence, content_type, headers, payload)
values ($1, $2, 'RECOVERY_REQUIRED', $3, clock_timestamp(), clock_timestamp(), $4, $5, $6, $7, $8, $9, $10::jsonb, $11)
on conflict (consumer, message_id) do update set state = excluded.state, attempts = excluded.attempts, parked_at = excluded.parked_at,
  reason = excluded.reason, type = excluded.type, aggregate_type = excluded.aggregate_type, aggregate_id = excluded.aggregate_id,
  sequence = excluded.sequence, content_type = excluded.content_type, headers = excluded.headers, payload = excluded.payload
where m.state = 'RECEIVED'`

// Park implements [inbox.Driver].
func (s *Messages) Park(ctx context.Context, consumer string, m inbox.Message, attempts int, reason string) (inbox.Verdict, error) {
	headers, err := json.Marshal(m.Headers)
	if err != nil {
		return 0, fault.Textf("pginbox: the headers cannot be stored: %w", err)
	}
	if m.Payload == nil {
		m.Payload = []byte{}
	}
	tag, err := s.db.Exec(ctx, parkSQL, consumer, m.ID, attempts, reason, m.Type, m.AggregateType, m.AggregateID, m.Sequence, m.ContentType,
		string(headers), m.Payload)
	switch {
	case err != nil:
		return 0, err
	case tag.RowsAffected() == 1:
		return inbox.Fresh, nil
	}
	return settled(ctx, s.db, "pginbox.Park", consumer, m.ID)
}

const stateSQL = `select state from caskeleton.inbox_message where consumer = $1 and message_id = $2`

// settled reads which end a message has come to that could be neither claimed nor parked.
func settled(ctx context.Context, q postgres.DBTX, op, consumer, id string) (inbox.Verdict, error) {
	var state string
	err := q.QueryRow(ctx, stateSQL, consumer, id).Scan(&state)
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return 0, err
	case state == "COMPLETED":
		return inbox.Done, nil
	case state == "RECOVERY_REQUIRED":
		return inbox.Settling, nil
	}
	// It was deleted, or counted anew, between the statements: the next delivery will see.
	return 0, fault.New(fault.DBSerializationFailure, op, nil)
}
