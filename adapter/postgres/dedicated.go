package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Dedicated opens a connection outside of the pool, for what needs a session of its own, such as LISTEN. dsn leads to the same server
// without a pooler in between; "" means the DSN of db. A connection that leads through a pooler is refused with [ErrPooler]. The caller
// closes the connection, bounds its waits by ctx, and translates its errors.
func (db *DB) Dedicated(ctx context.Context, dsn string) (*pgx.Conn, error) {
	const op = "postgres.Dedicated"
	cfg := db.cfg
	if dsn != "" {
		if _, err := pgx.ParseConfig(dsn); err != nil {
			return nil, errors.New("postgres: the DSN of a dedicated session cannot be parsed; write it as postgres://user:password@host:5432/database?sslmode=verify-full")
		}
		cfg.DSN = dsn
	}
	pc, err := poolConfig(cfg, route{standby: db.route.standby})
	if err != nil {
		return nil, err
	}
	cc := pc.ConnConfig
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	cc.RuntimeParams["idle_session_timeout"] = "0" // it waits for a living
	conn, err := pgx.ConnectConfig(ctx, cc)
	if MetPooler(err) {
		return nil, fmt.Errorf("%w; give the DSN of the server itself", ErrPooler)
	}
	if err != nil {
		return nil, db.classifier.Translate(ctx, op, err)
	}
	return conn, nil
}
