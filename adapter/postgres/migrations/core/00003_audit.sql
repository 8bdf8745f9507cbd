-- +goose Up

-- Keeps created_at, created_by, updated_at and updated_by of any table that has them:
--
--   create trigger audit before insert or update on shop.item for each row execute function caskeleton.audit_stamp();
--
-- The actor is the transaction's setting caskeleton.actor; without it, whom the statement names, where that can be told; else "system". What a
-- statement says of the other columns does not count. updated_at does not go back, although a transaction that began first may write last.
-- +goose StatementBegin
create function caskeleton.audit_stamp() returns trigger language plpgsql as $$
declare
    blank constant text := E' \t\r\n';
    actor text := nullif(btrim(current_setting('caskeleton.actor', true), blank), '');
begin
    if tg_op = 'INSERT' then
        actor := coalesce(actor, nullif(btrim(new.created_by, blank), ''), 'system');
        new.created_at := transaction_timestamp();
        new.created_by := actor;
        new.updated_at := new.created_at;
        new.updated_by := actor;
        return new;
    end if;
    if actor is null and new.updated_by is distinct from old.updated_by then
        actor := nullif(btrim(new.updated_by, blank), '');
    end if;
    new.created_at := old.created_at;
    new.created_by := old.created_by;
    new.updated_at := greatest(transaction_timestamp(), old.updated_at);
    new.updated_by := coalesce(actor, 'system');
    return new;
end $$;
-- +goose StatementEnd
