package migrations

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"maps"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"caskeleton.dev/adapter/postgres"
)

// open returns a database/sql handle over one connection that is never replaced. Goose wants a *sql.DB; were that to reconnect, it
// would go on without the lock, which ends with the session that took it.
func (m *Migrator) open(ctx context.Context) (*sql.DB, error) {
	cfg := m.conn.Copy()
	// Prepared statements do not survive the DDL around them.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	maps.Copy(cfg.RuntimeParams, map[string]string{
		"application_name": "caskeleton-migrations",
		"search_path":      "", // files name their schemas
		"timezone":         "UTC",
		// The length of a migration is the operator's to judge; what it may block is bounded by lock_timeout.
		"statement_timeout":                   "0",
		"idle_in_transaction_session_timeout": "0",
		"lock_timeout":                        milliseconds(m.opts.TableLockTimeout),
		// Without this a killed migrator's statement runs on, and its lock with it.
		"client_connection_check_interval": "2s",
	})
	wanted := cfg.ValidateConnect // target_session_attrs
	cfg.ValidateConnect = func(ctx context.Context, server *pgconn.PgConn) error {
		if wanted != nil {
			if err := wanted(ctx, server); err != nil {
				return err
			}
		}
		return postgres.Direct(ctx, server)
	}
	return m.connect(ctx, cfg)
}

// openToRead is open without settings of the session's own, for one short transaction: the service's role may stand behind a pooler.
func (m *Migrator) openToRead(ctx context.Context) (*sql.DB, error) {
	cfg := m.conn.Copy()
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	clear(cfg.RuntimeParams)
	return m.connect(ctx, cfg)
}

func (m *Migrator) connect(ctx context.Context, cfg *pgx.ConnConfig) (*sql.DB, error) {
	db := sql.OpenDB(&once{Connector: stdlib.GetConnector(*cfg)})
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	if err := db.PingContext(ctx); err != nil {
		if postgres.MetPooler(err) {
			return nil, errors.Join(ErrPooler, db.Close())
		}
		return nil, errors.Join(m.classifier.Translate(ctx, "migrations.connect", err), db.Close())
	}
	return db, nil
}

type once struct {
	driver.Connector
	used atomic.Bool
}

func (o *once) Connect(ctx context.Context) (driver.Conn, error) {
	if o.used.Swap(true) {
		return nil, errSessionLost
	}
	return o.Connector.Connect(ctx)
}
