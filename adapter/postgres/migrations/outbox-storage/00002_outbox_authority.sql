-- +goose Up

-- Who records and ships events. v2: the kit. v1: what the kit takes over from, by way of the table that legacy names; appends write
-- there, and nothing of the kit's is delivered. The way from v1 to v2 is a command's, and goes one way.
update caskeleton.outbox_control set authority = 'v2';
alter table caskeleton.outbox_control
    alter column authority set default 'v2',
    alter column authority set not null,
    add column legacy text, -- schema.table; kept after the change, as a trace of it
    add constraint outbox_control_authority check (case authority when 'v2' then true when 'v1' then legacy is not null else false end);
