package pgoutbox

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"caskeleton.dev/adapter/postgres"
)

// connectOwner opens a connection of its own for the role that owns the schema.
func connectOwner(ctx context.Context, op, dsn, application, lockTimeout string, errs *postgres.Classifier) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("pgoutbox: the DSN cannot be parsed; use one like postgres://user@host/database")
	}
	cfg.RuntimeParams["search_path"] = ""
	cfg.RuntimeParams["application_name"] = application
	cfg.RuntimeParams["lock_timeout"] = lockTimeout
	cfg.RuntimeParams["timezone"] = "UTC"
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, errs.Translate(ctx, op, err)
	}
	return conn, nil
}

func closeOwner(ctx context.Context, conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
