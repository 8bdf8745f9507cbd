-- +goose Up

-- Set while effects outside the database are under way, or were interrupted: in the states EXECUTING and ABANDONED, which alone are in the
-- index that operators and the reaper look through. The updates of a transactional operation leave it null, and so stay HOT.
alter table caskeleton.idempotency_record add column executing_since timestamptz;
alter table caskeleton.idempotency_record add constraint idempotency_record_executing
    check ((executing_since is not null) = (state in ('EXECUTING', 'ABANDONED')));
create index idempotency_record_executing_since on caskeleton.idempotency_record (created_at, scope) where executing_since is not null;

-- Answers over the inline limit, whose record has the payload_ref 'table'. They come with the answer of the record and go with the record.
create table caskeleton.idempotency_response (
    scope bytea primary key references caskeleton.idempotency_record (scope) on delete cascade,
    body  bytea not null
);

-- A row a version from now on. Whoever adds one says which number it is by what it knows, so that of two who know different versions one
-- is first and the other has to look again. The default is for instances that know of one version only.
alter table caskeleton.idempotency_key add column ordinal int not null default 1;
create unique index idempotency_key_ordinal on caskeleton.idempotency_key (ordinal);
drop index caskeleton.idempotency_key_one;
