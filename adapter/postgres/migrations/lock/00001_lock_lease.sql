-- +goose Up

-- One row a held key: inserted by who takes it, deleted by who gives it back. Its updates are a waiter's mark, a renewal and the
-- take-over of an expired lease; none touches an indexed column, and room is left on each page, so that they are HOT. Expiry has no
-- index, which each renewal would have to write: only Reap looks for it.
--
-- Dead rows come fast where few are alive, so vacuum comes by their number. It leaves the file as long as it was: to cut it, it would lock
-- everybody out, and a file of few pages would be read as a whole, by plans that stay while it grows again.
create table caskeleton.lock_lease (
    digest      bytea       primary key check (octet_length(digest) = 32), -- SHA-256 over region and name: keys are exact, of any length
    region      text        not null check (char_length(region) <= 200),   -- as are the first 200 characters of both, to be read by people
    name        text        not null check (char_length(name) <= 200),
    token       bytea       not null check (octet_length(token) = 16),     -- random, one an acquisition
    acquired_at timestamptz not null,
    expires_at  timestamptz not null,
    contended   boolean     not null default false                         -- somebody waits: the release is announced
) with (fillfactor = 70, vacuum_truncate = false, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
