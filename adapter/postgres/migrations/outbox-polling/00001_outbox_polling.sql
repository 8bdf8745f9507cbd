-- +goose Up

-- A row an aggregate with something to deliver: it exists exactly when drained_sequence < last_sequence in its counter. An append only
-- ever inserts it; all updates and the delete are the relay's.
create table caskeleton.outbox_lane (
    aggregatetype    text        not null,
    aggregateid      text        not null,
    next_sequence    bigint      not null, -- of the head; what is below was delivered
    next_recorded_at timestamptz not null, -- the head was not recorded before
    head_type        text,                 -- null: not known before the next claim
    due              timestamptz,          -- null while held; the lease's end while there is an owner
    hold             text        check (hold in ('dead', 'type', 'operator')),
    owner            text,
    token            uuid,
    attempt          int         not null default 0 check (attempt >= 0), -- claims of this head, the present one included
    looks            int         not null default 0, -- in vain, while an append was open
    last_error       text,
    primary key (aggregatetype, aggregateid),
    constraint outbox_lane_lease check (num_nonnulls(owner, token) <> 1)
) with (fillfactor = 50);
create index outbox_lane_due on caskeleton.outbox_lane (due) where due is not null;
