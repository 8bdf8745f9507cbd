package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strconv"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// ErrPooler means that a session which must be the caller's own leads through a pooler: others would get its settings, or it would lose them.
var ErrPooler error = fault.Text("postgres: a pooler stands between the service and the server")

// MetPooler reports whether err is the failure to open a connection that had to lead to the server itself and met a pooler instead: either
// [Direct] noticed it, or the pooler refused startup parameters that it cannot keep, as PgBouncer does.
func MetPooler(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, ErrPooler) || ok && pg.Code == pgerrcode.ProtocolViolation
}

// route says what a new connection must be like.
type route struct {
	pooler  bool // the settings ride in BEGIN, so that it may lead through a pooler
	standby bool // it may be read-only
}

// pool is the name of the pool in metrics.
func (r route) pool() string {
	if r.standby {
		return "replica"
	}
	return "primary"
}

// validate implements target_session_attrs=read-write, and recognises a pooler: the pid that it gives to clients is not a session's.
// Both take one round trip, and a multi-host DSN goes on to the next host.
func (r route) validate(ctx context.Context, server *pgconn.PgConn) error {
	direct, readOnly, err := look(ctx, server)
	switch {
	case err != nil:
		return err
	case !r.standby && readOnly:
		return pgconn.ErrReadOnlyConnection
	case !r.pooler && !direct:
		return ErrPooler
	}
	return nil
}

// Direct is a [pgconn.ValidateConnectFunc] that returns [ErrPooler] where the session is not the client's own, for what one session alone
// can do outside of a [DB]. It takes a round trip.
func Direct(ctx context.Context, server *pgconn.PgConn) error {
	direct, _, err := look(ctx, server)
	if err == nil && !direct {
		err = ErrPooler
	}
	return err
}

func look(ctx context.Context, server *pgconn.PgConn) (direct, readOnly bool, err error) {
	results, err := server.Exec(ctx, "select pg_catalog.pg_backend_pid(), pg_catalog.current_setting('transaction_read_only')").ReadAll()
	if err != nil {
		return false, false, err
	}
	row := results[0].Rows[0]
	return string(row[0]) == strconv.FormatUint(uint64(server.PID()), 10), string(row[1]) == "on", nil
}

// inBegin returns o with all that a direct connection was given when it began, and the settings without an option of their own.
func (db *DB) inBegin(o tx.BeginOptions) (_ tx.BeginOptions, settings string) {
	if !db.route.pooler {
		return o, ""
	}
	o.StatementTimeout = cmp.Or(o.StatementTimeout, db.cfg.StatementTimeout)
	o.LockTimeout = cmp.Or(o.LockTimeout, db.cfg.LockTimeout)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, db.cfg.IdleTxTimeout)
	return o, "; set local search_path = ''; set local timezone = 'UTC'"
}

// checkPooler refuses what does not work, or is not bounded, behind a pooler.
func (db *DB) checkPooler(ctx context.Context, conn *pgx.Conn) error {
	var problems []Problem
	if db.cfg.ExecMode == "cache_statement" {
		kept, err := keepsPrepared(ctx, conn.PgConn())
		if err != nil {
			return err
		}
		if !kept {
			problems = append(problems, Problem{
				Field: "ExecMode", Value: `"cache_statement"`, Problem: "needs prepared statements, and the pooler in between loses them (as PgBouncer does before 1.21, or with max_prepared_statements = 0)",
				Fix: "set it (APP_DB_EXEC_MODE) to cache_describe, exec or simple_protocol",
			})
		}
	}
	for _, s := range [][2]string{{"StatementTimeout", "statement_timeout"}, {"LockTimeout", "lock_timeout"}} {
		var value string
		if err := conn.QueryRow(ctx, "select pg_catalog.current_setting('"+s[1]+"')", pgx.QueryExecModeSimpleProtocol).Scan(&value); err != nil {
			return err
		}
		if value == "0" {
			problems = append(problems, Problem{
				Field: s[0], Problem: "cannot be kept by the session behind a pooler, and the role has no " + s[1] + " of its own, so that statements outside of transactions would be unlimited",
				Fix: "run `caskeleton migrate grants`, which writes ALTER ROLE ... SET " + s[1],
			})
		}
	}
	var level string
	if err := conn.QueryRow(ctx, "select pg_catalog.current_setting('default_transaction_isolation')", pgx.QueryExecModeSimpleProtocol).Scan(&level); err != nil {
		return err
	}
	if level != "read committed" {
		problems = append(problems, Problem{
			Field: "DSN", Problem: "leads through a pooler as a role whose default_transaction_isolation is " + level + ", at which single statements would fail by each other",
			Fix: "ALTER ROLE ... SET default_transaction_isolation = 'read committed'",
		})
	}
	if problems != nil {
		return &ConfigError{problems}
	}
	return nil
}

// keepsPrepared reports whether the pooler carries prepared statements from server to server. One that does gives them names of its own.
// The transaction keeps us on one server meanwhile.
func keepsPrepared(ctx context.Context, server *pgconn.PgConn) (kept bool, err error) {
	if _, err := server.Exec(ctx, "begin").ReadAll(); err != nil {
		return false, err
	}
	name := "caskeleton_" + rand.Text()
	if _, err := server.Prepare(ctx, name, "select 1", nil); err != nil {
		return false, err
	}
	r := server.ExecParams(ctx, "select from pg_catalog.pg_prepared_statements where name = $1", [][]byte{[]byte(name)}, nil, nil, nil).Read()
	if r.Err != nil {
		return false, r.Err
	}
	if err := server.Deallocate(ctx, name); err != nil {
		return false, err
	}
	_, err = server.Exec(ctx, "rollback").ReadAll()
	return len(r.Rows) == 0, err
}
