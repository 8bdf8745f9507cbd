-- +goose Up

-- A row a transaction that asked for it, written with its BEGIN and kept for an hour. Whoever lost the answer of COMMIT inserts the id
-- again: a conflict says that the transaction has committed.
create table caskeleton.commit_witness (
    id         uuid        primary key,
    written_at timestamptz not null default clock_timestamp()
);
create index commit_witness_written_at on caskeleton.commit_witness (written_at);
