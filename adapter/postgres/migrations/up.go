package migrations

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"caskeleton.dev/fault"
)

// Applied is one file that Up has applied.
type Applied struct {
	Stream   string
	File     string
	Version  int64
	Duration time.Duration
}

// Up applies what is pending, stream by stream, and returns what this call applied, also beside an error. Callers at the same moment, in
// this process or others, take turns: each file is applied once, and those who waited find nothing left to do. A file that fails stops
// the run; the files before it stay, and the next Up goes on from there.
func (m *Migrator) Up(ctx context.Context) ([]Applied, error) {
	var done []Applied
	for _, s := range m.streams {
		steps, err := m.up(ctx, s)
		done = append(done, steps...)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (m *Migrator) up(ctx context.Context, s source) ([]Applied, error) {
	db, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	if err := m.lock(ctx, db, s.Name); err != nil {
		return nil, err
	}
	defer m.unlock(ctx, db, s.Name)

	store, err := newStore(s)
	if err != nil {
		return nil, err
	}
	for _, schema := range []string{kitSchema, s.Schema} {
		if err := ensureSchema(ctx, db, schema); err != nil {
			return nil, fault.Textf("migrations: stream %s: create schema %s: %w", s.Name, schema, told(err))
		}
	}
	h, err := readHistory(ctx, db, s.Stream)
	if err != nil {
		return nil, err
	}
	st := compare(s, h)
	if err := m.admit(ctx, st); err != nil {
		return nil, err
	}
	if err := store.ensure(ctx, db); err != nil {
		return nil, fault.Textf("migrations: stream %s: create its history: %w", s.Name, told(err))
	}
	// A provider remembers that it has looked for its table, so each run has a new one.
	run := &run{}
	run.provider, err = goose.NewProvider(goose.DialectCustom, db, s.FS, goose.WithStore(store), goose.WithDisableGlobalRegistry(true),
		goose.WithAllowOutofOrder(false), goose.WithVerbose(true), goose.WithSlog(slog.New(run)))
	if err != nil {
		return nil, fault.Textf("migrations: stream %s: %w", s.Name, told(err))
	}
	var done []Applied
	for _, f := range s.files {
		if f.version <= st.Have {
			continue
		}
		step, err := m.apply(ctx, db, run, s, f)
		if err != nil {
			return done, err
		}
		done = append(done, step)
	}
	return done, nil
}

func (m *Migrator) apply(ctx context.Context, db *sql.DB, run *run, s source, f file) (Applied, error) {
	if err := m.prepare(ctx, db, s, f); err != nil {
		return Applied{}, fault.Textf("migrations: stream %s: prepare for %s: %w", s.Name, f.name, told(err))
	}
	run.statements = 0
	res, err := run.provider.UpByOne(ctx)
	if err != nil {
		if partial, ok := errors.AsType[*goose.PartialError](err); ok {
			err = partial.Err
		}
		kept := "nothing of it was kept"
		switch _, answered := errors.AsType[*pgconn.PgError](err); {
		case !f.inTx:
			kept = "it ran outside a transaction, and may have left part of its work"
		case !answered: // the COMMIT too may be what was not answered
			kept = "the next run finds out whether it was kept"
		}
		return Applied{}, fault.Textf("migrations: stream %s: %s failed, %s%s; see docs/runbooks/migration-failure.md: %w", s.Name, f.name, kept, run.place(err), told(err))
	}
	m.opts.Logger.InfoContext(ctx, "migration applied",
		slog.String("stream", s.Name), slog.String("file", f.name), slog.Duration("duration", res.Duration))
	return Applied{Stream: s.Name, File: f.name, Version: f.version, Duration: res.Duration}, nil
}

// prepare sets the session for one file, and clears what an interrupted CREATE INDEX CONCURRENTLY left: an index that is never used, is
// kept up to date, and that IF NOT EXISTS takes for done.
func (m *Migrator) prepare(ctx context.Context, db *sql.DB, s source, f file) error {
	// What a file before this one SET would reach it in this run alone, and not in one that begins here.
	if _, err := db.ExecContext(ctx, `reset session authorization; reset all`); err != nil {
		return err
	}
	timeout := milliseconds(m.opts.TableLockTimeout)
	if !f.inTx {
		timeout = "0" // CONCURRENTLY waits for older transactions by design, and blocks no reader or writer meanwhile
	}
	if _, err := db.ExecContext(ctx, `select pg_catalog.set_config('lock_timeout', $1, false)`, timeout); err != nil {
		return err
	}
	if f.index == nil {
		return nil
	}
	var invalid bool
	err := db.QueryRowContext(ctx, `select exists (select from pg_catalog.pg_index i
		join pg_catalog.pg_class c on c.oid = i.indexrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1 and c.relname = $2 and not i.indisvalid)`, f.index.schema, f.index.name).Scan(&invalid)
	if err != nil || !invalid {
		return err
	}
	m.opts.Logger.WarnContext(ctx, "dropping the invalid index of an interrupted migration",
		slog.String("stream", s.Name), slog.String("file", f.name), slog.String("index", f.index.name))
	_, err = db.ExecContext(ctx, `drop index concurrently if exists `+f.index.schema+`.`+f.index.name)
	return err
}

// ensureSchema looks first: CREATE SCHEMA IF NOT EXISTS wants the right to create even where there is nothing to do. Two streams may
// share a schema and meet here, since each holds a lock of its own.
func ensureSchema(ctx context.Context, db *sql.DB, schema string) error {
	if exists, err := schemaExists(ctx, db, schema); err != nil || exists {
		return err
	}
	_, err := db.ExecContext(ctx, `create schema if not exists `+schema)
	if err == nil {
		return nil
	}
	if exists, lookErr := schemaExists(ctx, db, schema); lookErr == nil && exists {
		return nil
	}
	return err
}
