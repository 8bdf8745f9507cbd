-- +goose Up

-- One row a message and consumer. Nearly all are inserted once, as COMPLETED, are never updated, and are deleted when they are old: such a
-- row holds the key and two times, and pages are filled. Only a message that was counted or parked is updated, and only a parked one is
-- kept whole, for whoever settles it.
create table caskeleton.inbox_message (
    consumer       text        not null check (char_length(consumer) between 1 and 255),
    message_id     text        not null check (char_length(message_id) between 1 and 255),
    state          text        not null,
    attempts       bigint      not null default 0, -- as counted here, or by the broker when it was parked; 0 where it never failed
    received_at    timestamptz not null,
    completed_at   timestamptz,
    parked_at      timestamptz,
    reason         text check (char_length(reason) <= 500), -- codes and operations, no values
    type           text,
    aggregate_type text,
    aggregate_id   text,
    sequence       bigint,
    content_type   text,
    headers        jsonb check (jsonb_typeof(headers) = 'object'),
    payload        bytea,
    primary key (consumer, message_id),
    constraint inbox_message_state check (
        case state
            when 'RECEIVED' then attempts > 0 and completed_at is null
                and num_nonnulls(parked_at, reason, type, aggregate_type, aggregate_id, sequence, content_type, headers, payload) = 0
            when 'COMPLETED' then attempts >= 0 and completed_at is not null
                and num_nonnulls(parked_at, reason, type, aggregate_type, aggregate_id, sequence, content_type, headers, payload) = 0
            when 'RECOVERY_REQUIRED' then attempts > 0 and completed_at is null
                and num_nulls(parked_at, reason, type, aggregate_type, aggregate_id, sequence, content_type, headers, payload) = 0
            else false
        end)
);

-- For purging, in batches from the oldest. It takes new entries at its right end only, and counting or parking leaves it alone.
create index inbox_message_completed_at on caskeleton.inbox_message (completed_at) where completed_at is not null;
