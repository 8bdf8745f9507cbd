package postgres

import (
	"context"
	"errors"
	"maps"

	"github.com/jackc/pgx/v5"
)

// Dedicated opens a session outside of the pool, for what a session alone can do, such as LISTEN. dsn is a way to the same server past a
// pooler, which would share the session; "" is the DB's own. The caller closes it, ends its waits by ctx, and translates its errors.
func (db *DB) Dedicated(ctx context.Context, dsn string) (*pgx.Conn, error) {
	const op = "postgres.Dedicated"
	cc := db.pool.Config().ConnConfig
	if dsn != "" {
		direct, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, errors.New("postgres: the DSN of a dedicated session cannot be parsed; write it as postgres://user:password@host:5432/database?sslmode=verify-full")
		}
		maps.Copy(direct.RuntimeParams, cc.RuntimeParams)
		direct.ConnectTimeout, direct.ValidateConnect, direct.OnPgError = cc.ConnectTimeout, cc.ValidateConnect, cc.OnPgError
		cc = direct
	}
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	cc.RuntimeParams["idle_session_timeout"] = "0" // it waits for a living
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return nil, db.classifier.Translate(ctx, op, err)
	}
	return conn, nil
}
