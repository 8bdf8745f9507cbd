// Package migrations brings a database to the schema that a binary needs.
//
// Migrations come in independent streams: the kit's own ([All]) and the service's, one [Stream] each. A stream has its
// folder, its history table caskeleton.migrations_<stream> and its lock; it is switched on by naming it in [New], and switched off by
// leaving it out, which keeps its tables and data.
//
// [Migrator.Up] migrates: any number of instances may call it at once; one of them works and the others wait, within a bound.
// [Migrator.Status] and [Migrator.Verify] only read, so that a role without DDL can call them; [Migrator.Plan] prints what Up would run, and
// [Migrator.Grants] what leaves the service's role with its tables and nothing else.
//
// Files are named NNNNN_name.sql, begin with "-- +goose Up", go forward only, and are never edited once applied: the checksum of each is
// kept, and a difference stops the next run. A file runs in one transaction, together with its mark in the history. A file that
// cannot run in a transaction says "-- +goose NO TRANSACTION" and holds one statement that can be run again.
//
// What to do after a failure: docs/runbooks/migration-failure.md.
package migrations
