-- +goose Up

-- Who changed what by hand, and why. A row is written in the transaction of the change, so that there is neither without the other. Nothing
-- of the kit changes or deletes one, however old: the runtime role may not, and the owner has to disable the trigger first.
create table caskeleton.operator_action (
    id       bigint      generated always as identity primary key,
    act      uuid        not null default gen_random_uuid(), -- the same for all rows of one command: one that works in batches writes a row for each
    acted_at timestamptz not null default clock_timestamp(),
    operator text        not null check (operator <> ''),
    verb     text        not null check (verb <> ''), -- as idempotency.reconcile
    kind     text        not null check (kind <> '' and octet_length(kind) <= 100), -- of what was acted on, as idempotency_record
    subject  text        check (octet_length(subject) <= 1000), -- which one; null where a filter chose
    filter   jsonb,
    reason   text        not null check (reason <> ''),
    changed  bigint      not null check (changed >= 0), -- how many really changed
    before   jsonb, -- what was there, and what has become of it, as far as it tells more than that something changed
    after    jsonb,
    constraint operator_action_which check (num_nonnulls(subject, filter) > 0)
);
create index operator_action_subject on caskeleton.operator_action (kind, subject, id) where subject is not null;

-- +goose StatementBegin
create function caskeleton.operator_action_kept() returns trigger language plpgsql as $$
begin
    raise exception 'caskeleton.operator_action is append only'
        using errcode = '55000', hint = 'To take old rows away, the owner disables the trigger "kept" of the table in the same transaction.';
end $$;
-- +goose StatementEnd
create trigger kept before update or delete or truncate on caskeleton.operator_action
    for each statement execute function caskeleton.operator_action_kept();
