-- +goose Up

-- What the secret is known by, so that an instance with another one does not start: under it, repeats would run again. The value is an
-- HMAC of a fixed text and tells nothing of the secret.
create table caskeleton.idempotency_key (
    version     text  primary key,
    check_value bytea not null
);

-- One row at most, until keys rotate: of two instances that start at once, one is first, whatever their versions.
create unique index idempotency_key_one on caskeleton.idempotency_key ((true));
