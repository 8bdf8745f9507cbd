package bootstrap

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"caskeleton.dev/adapter/broker/natsbroker"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/embedded"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/bootstrap/config"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/backoff"
	"caskeleton.dev/lock/schedule"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// PostgresDir returns where the embedded PostgreSQL of a configuration keeps its data.
func PostgresDir(c *config.Config) string { return filepath.Join(c.DataDir, "postgres") }

// weeksAhead is for how many weeks, the present one included, there are partitions of the outbox after a start that may make them.
const weeksAhead = 4

// Pauses between tries to reach a server at the start: the first, and at most.
const firstPause, longestPause = 250 * time.Millisecond, 5 * time.Second

// start brings up everything behind the listener. On failure nothing is left open.
func start(ctx context.Context, c *config.Config, s Service, log *slog.Logger) (_ *App, err error) {
	keys, err := Keyring(c)
	if err != nil {
		return nil, err
	}
	streams, err := s.streams(c)
	if err != nil {
		return nil, err
	}
	if err := s.Nesting.check(c); err != nil {
		return nil, err
	}
	dsn, migrationDSN, err := database(ctx, c, log)
	if err != nil {
		return nil, err
	}
	db, err := open(ctx, c, s, dsn, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = db.Close(context.WithoutCancel(ctx)) // nothing is in flight yet
		}
	}()
	if migrationDSN != "" {
		if err := migrate(ctx, migrationDSN, streams, log); err != nil {
			return nil, err
		}
		if s.Events != nil {
			if err := premake(ctx, db, migrationDSN, log); err != nil {
				return nil, err
			}
		}
	}
	schema, err := migrations.New(dsn, streams, &migrations.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	runner, err := tx.NewRunner(db, runnerOptions(c, log))
	if err != nil {
		return nil, err
	}
	responses, closing, err := s.responses(c, log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closing()
		}
	}()
	guard, err := newGuard(c, s, keys, db, runner, responses, log)
	if err != nil {
		return nil, err
	}
	app := &App{Config: c, Log: log, DB: db, Runner: runner, Idempotency: guard, schema: schema, upkeep: []schedule.Job{forgetting(db)}}
	if s.Events != nil {
		if app.Outbox, err = outbox.New(pgoutbox.New(db), &outbox.Options{PayloadLimit: natsbroker.PayloadLimit}); err != nil {
			return nil, err
		}
		app.upkeep = append(app.upkeep, partitioning(db, migrationDSN, log))
	}
	if err := app.lock(ctx, s); err != nil {
		return nil, err
	}
	unlock := app.close
	app.close = func() { unlock(); closing() }
	return app, nil
}

// runnerOptions leave time to find out about a COMMIT until the server has given up a session whose client has vanished.
func runnerOptions(c *config.Config, log *slog.Logger) *tx.RunnerOptions {
	return &tx.RunnerOptions{ResolveTimeout: c.DB.IdleTxTimeout + 5*time.Second, Logger: log}
}

// check refuses a pool in which nested transactions could all wait for one another.
func (n *Nesting) check(c *config.Config) error {
	if n == nil {
		return nil
	}
	if err := postgres.CheckPool(c.DB.MaxConns, n.Workers, n.Depth); err != nil {
		return fault.Textf("APP_DB_MAX_CONNS: %w", err)
	}
	return nil
}

// database returns the DSN to work with, and the one to migrate with. The latter is "" where the service must not migrate: in the prod
// profile without APP_MIGRATION_DSN, somebody else does, and readiness waits for it.
func database(ctx context.Context, c *config.Config, log *slog.Logger) (dsn, migrationDSN string, err error) {
	if c.DB.URL.IsSet() {
		if c.Profile == config.Dev || c.DB.MigrationDSN.IsSet() {
			migrationDSN = c.DB.Migration().Reveal()
		}
		return c.DB.URL.Reveal(), migrationDSN, nil
	}
	server, err := embedded.Start(ctx, embedded.Options{DataDir: PostgresDir(c), Logger: log})
	if err != nil {
		return "", "", err
	}
	log.InfoContext(ctx, "embedded PostgreSQL is up; it keeps running until it is stopped", "version", server.Version(), "data_dir", server.DataDir())
	return server.DSN(), server.DSN(), nil
}

// open connects. A server that cannot be reached yet is waited for: the process is alive meanwhile, and not ready.
func open(ctx context.Context, c *config.Config, s Service, dsn string, log *slog.Logger) (*postgres.DB, error) {
	cfg := c.DB.Pool()
	cfg.DSN, cfg.ApplicationName = dsn, s.Name
	for try := 1; ; try++ {
		db, err := postgres.Open(ctx, cfg, &postgres.Options{Meter: s.Meter, Logger: log})
		if err == nil || fault.CodeOf(err) != fault.DBUnavailable {
			return db, err
		}
		pause := backoff.Bound(firstPause, longestPause, try)
		log.WarnContext(ctx, "PostgreSQL is not reachable yet", "error", fault.Reason(err), "next_try_in", pause)
		if err := backoff.Wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

func migrate(ctx context.Context, dsn string, streams []migrations.Stream, log *slog.Logger) error {
	m, err := migrations.New(dsn, streams, &migrations.Options{Logger: log})
	if err != nil {
		return err
	}
	applied, err := m.Up(ctx)
	if err != nil {
		return fault.Textf("migrating: %w", err)
	}
	log.InfoContext(ctx, "schema is up to date", "applied", len(applied))
	return nil
}

// premake makes the outbox's partitions ahead. That it could not is no reason not to start while there are some.
func premake(ctx context.Context, db *postgres.DB, dsn string, log *slog.Logger) error {
	_, failure := pgoutbox.Premake(ctx, dsn, weeksAhead)
	if failure == nil {
		return nil
	}
	left, err := pgoutbox.New(db).PartitionsLeft(ctx)
	if err != nil || left == 0 {
		return failure
	}
	log.WarnContext(ctx, "outbox partitions could not be made ahead; start again with the owner's role before they run out", "weeks_left", left, "error", fault.Reason(failure))
	return nil
}
