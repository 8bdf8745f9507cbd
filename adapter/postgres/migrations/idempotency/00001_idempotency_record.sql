-- +goose Up

-- One row an idempotency key. A row is updated two or three times in its first seconds (state, lease, payload) and then only read: no
-- column that those updates touch is indexed, and half of each page is left free, so that they are HOT and leave the indexes alone.
create table caskeleton.idempotency_record (
    scope            bytea       primary key check (octet_length(scope) = 32), -- HMAC-SHA-256 over the scope; the raw key is never stored
    key_version      text        not null, -- which secret made the HMAC
    tenant           text        not null default '',
    route            text        not null,
    fingerprint      bytea       not null check (octet_length(fingerprint) = 32),
    state            text        not null check (state in ('CLAIMED', 'EXECUTING', 'COMPLETED', 'FAILED', 'ABANDONED')),
    owner            text        not null,
    attempt          int         not null check (attempt > 0),
    operation        text        not null, -- unique to the call that claimed
    revision         bigint      not null,
    lease_expires_at timestamptz not null,
    expires_at       timestamptz not null,
    payload          bytea,
    payload_ref      text,
    created_at       timestamptz not null,
    updated_at       timestamptz not null,
    -- A terminal answer is stored once, inline or by reference; nothing else has one.
    constraint idempotency_record_answer check (
        case state
            when 'COMPLETED' then num_nonnulls(payload, payload_ref) = 1
            when 'FAILED' then num_nonnulls(payload, payload_ref) = 1
            else num_nonnulls(payload, payload_ref) = 0
        end)
) with (fillfactor = 50);

-- For the reaper, which walks from the oldest and tests expires_at on the row. expires_at itself is not indexed: a take-over
-- renews it, and an index on it would turn that update into a write to both indexes.
create index idempotency_record_created_at on caskeleton.idempotency_record (created_at);
