-- +goose Up

-- One row a job and slot: whoever inserts it runs it, and it is updated once, when the run ends, on the same page. The key serves the
-- history of a job and its pruning, both by slot.
create table caskeleton.job_run (
    job         text        not null check (char_length(job) between 1 and 100),
    slot        timestamptz not null,
    instance    text        not null check (char_length(instance) between 1 and 200),
    started_at  timestamptz not null,
    deadline    timestamptz not null, -- a run without an end is taken for abandoned from then on
    finished_at timestamptz,
    outcome     text check (outcome in ('succeeded', 'failed', 'overran', 'stopped', 'skipped')),
    reason      text        not null default '' check (char_length(reason) <= 500), -- codes, operations and types, no values
    primary key (job, slot),
    constraint job_run_end check ((finished_at is null) = (outcome is null))
) with (fillfactor = 70);
