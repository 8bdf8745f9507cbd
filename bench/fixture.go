package main

import (
	"bytes"
	"context"
	"errors"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgidempotency"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// fixture is one database, reached by the kit and, over a pool of the same size, by bare pgx.
type fixture struct {
	dsn    string
	db     *postgres.DB
	bare   *pgxpool.Pool
	runner *tx.Runner
	guard  *idempotency.Guard
	driver *pgoutbox.Driver
	outbox *outbox.Outbox
}

func newFixture(ctx context.Context, dsn string) (*fixture, error) {
	m, err := migrations.New(dsn, migrations.All(), nil)
	if err != nil {
		return nil, err
	}
	if _, err := m.Up(ctx); err != nil {
		return nil, err
	}
	f := &fixture{dsn: dsn}
	if f.db, err = postgres.Open(ctx, postgres.Config{DSN: dsn}, nil); err != nil {
		return nil, err
	}
	bare, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	bare.MaxConns = f.db.Stat().MaxConns()
	if f.bare, err = pgxpool.NewWithConfig(ctx, bare); err != nil {
		return nil, err
	}
	for _, sql := range []string{
		`drop schema if exists bench cascade`, `create schema bench`,
		`create table bench.item (id bigint generated always as identity primary key, name text not null)`,
		`create table bench.event (id uuid primary key default gen_random_uuid(), aggregatetype text not null, aggregateid text not null, type text not null,
			payload bytea not null, recorded_at timestamptz not null default clock_timestamp())`,
	} {
		if _, err := f.bare.Exec(ctx, sql); err != nil {
			return nil, err
		}
	}
	if f.runner, err = tx.NewRunner(f.db, nil); err != nil {
		return nil, err
	}
	keys, err := idempotency.NewKeyring("bench", bytes.Repeat([]byte("k"), 32))
	if err != nil {
		return nil, err
	}
	if f.guard, err = idempotency.New(pgidempotency.New(f.db), f.runner, keys, nil); err != nil {
		return nil, err
	}
	f.driver = pgoutbox.New(f.db)
	f.outbox, err = outbox.New(f.driver, nil)
	return f, err
}

func (f *fixture) close(ctx context.Context) error {
	f.bare.Close()
	return f.db.Close(ctx)
}

// sibling makes a database of its own on the same server, in the place of the one that an earlier run left.
func (f *fixture) sibling(ctx context.Context, name string) (*fixture, error) {
	u, err := url.Parse(f.dsn)
	if err != nil || u.Scheme == "" {
		return nil, errors.New("bench: DATABASE_URL must be a URL: the database's name in it is replaced")
	}
	for _, sql := range []string{`drop database if exists `, `create database `} {
		if _, err := f.bare.Exec(ctx, sql+pgx.Identifier{name}.Sanitize()); err != nil {
			return nil, err
		}
	}
	u.Path = "/" + name
	return newFixture(ctx, u.String())
}

// durability is what the server promises of a commit.
func (f *fixture) durability(ctx context.Context) (s string, err error) {
	err = f.bare.QueryRow(ctx, `select 'fsync ' || current_setting('fsync') || ', synchronous_commit ' || current_setting('synchronous_commit')`).Scan(&s)
	return s, err
}
