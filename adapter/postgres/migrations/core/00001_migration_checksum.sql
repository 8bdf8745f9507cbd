-- +goose Up

-- What each applied file looked like, for every stream. The row is written with the file's mark in its history.
create table caskeleton.migration_checksum (
    stream     text        not null,
    version    bigint      not null check (version > 0),
    file       text        not null,
    checksum   text        not null check (length(checksum) = 64), -- SHA-256 of the file, hex, line ends as LF
    applied_at timestamptz not null default clock_timestamp(),
    primary key (stream, version)
);
