-- +goose Up

-- Who ships events. The one row is read by each append and each claim, under a shared advisory lock or, where the snapshot is older
-- than the statement, under FOR SHARE; who changes the mode holds both exclusively and raises the epoch.
create table caskeleton.outbox_control (
    singleton boolean primary key default true check (singleton),
    mode      text    not null default 'polling' check (mode in ('polling', 'external', 'paused')),
    authority text, -- who ships in external mode: the replication slot
    epoch     bigint  not null default 1
);
insert into caskeleton.outbox_control default values;

-- Makes an id unique over all partitions, whose own keys must hold recorded_at.
create table caskeleton.outbox_identity (
    id          uuid        primary key,
    recorded_at timestamptz not null -- of the event, so that both go at the same time
);

-- Envelopes: written once, never updated. Debezium's outbox router takes the columns by these names. The key is in the order in which a
-- lane is read, and begins in the partition of the lane's next event.
create table caskeleton.outbox_event (
    aggregatetype     text        not null,
    aggregateid       text        not null,
    recorded_at       timestamptz not null, -- never goes back within an aggregate
    sequence          bigint      not null, -- within the aggregate, from 1, without holes, in the order of commits
    id                uuid        not null,
    type              text        not null,
    schema_version    int         not null,
    aggregate_version bigint,
    content_type      text        not null,
    headers           jsonb       not null,
    payload           bytea       not null,
    occurred_at       timestamptz not null,
    epoch             bigint      not null,
    primary key (aggregatetype, aggregateid, recorded_at, sequence)
) partition by range (recorded_at);

-- The weeks that an append may need before anybody has set up the maintenance. There is no default partition: it would forbid
-- detaching concurrently, and hide that the maintenance does not run.
-- +goose StatementBegin
do $$
declare
    monday timestamp := date_trunc('week', clock_timestamp() at time zone 'UTC');
begin
    for n in 0..3 loop
        execute format('create table caskeleton.%I partition of caskeleton.outbox_event for values from (%L) to (%L)',
            'outbox_event_' || to_char(monday + n * interval '7 days', 'YYYYMMDD'),
            (monday + n * interval '7 days') at time zone 'UTC', (monday + (n + 1) * interval '7 days') at time zone 'UTC');
    end loop;
end $$;
-- +goose StatementEnd

-- A row an aggregate, never deleted (about 100 bytes). An append holds it until commit, which makes sequences follow commits.
-- What is above drained_sequence has not been delivered yet.
create table caskeleton.outbox_counter (
    aggregatetype    text        not null,
    aggregateid      text        not null,
    last_sequence    bigint      not null,
    drained_sequence bigint      not null,
    last_recorded_at timestamptz not null,
    primary key (aggregatetype, aggregateid)
) with (fillfactor = 70); -- room for HOT updates: no other column is indexed
