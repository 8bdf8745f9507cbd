-- +goose Up
alter table orders."order"
  alter column created_at drop default,
  add column created_by text        not null default 'system',
  add column updated_at timestamptz not null default transaction_timestamp(),
  add column updated_by text        not null default 'system';
update orders."order" set updated_at = created_at;
alter table orders."order" alter column created_by drop default, alter column updated_at drop default, alter column updated_by drop default;

create trigger audit before insert or update on orders."order" for each row execute function caskeleton.audit_stamp();
