package postgres

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// poolConfig is cfg, which is valid, in pgx's terms.
func poolConfig(cfg Config, r route) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(cfg.DSN)
	if err != nil { // pgx.ParseConfig took it, so it is one of the pool_* settings
		return nil, &ConfigError{[]Problem{{Field: "DSN", Problem: "has a pool_* setting that cannot be parsed", Fix: "remove it and set the field of Config"}}}
	}
	pc.MaxConns, pc.MinConns, pc.MinIdleConns = cfg.MaxConns, 0, 0
	pc.MaxConnLifetime, pc.MaxConnLifetimeJitter, pc.MaxConnIdleTime = cfg.MaxLifetime, cfg.MaxLifetimeJitter, cfg.IdleTime
	// Both end before the acquire does, so that a hanging server is told from a busy pool, and a dead idle connection replaced in time.
	pc.PingTimeout = min(time.Second, cfg.AcquireTimeout/4)
	pc.BeforeConnect = install
	cc := pc.ConnConfig
	if limit := cfg.AcquireTimeout * 3 / 4; cc.ConnectTimeout == 0 || cc.ConnectTimeout > limit {
		cc.ConnectTimeout = limit
	}
	cc.DefaultQueryExecMode = execModes()[cfg.ExecMode]
	cc.ValidateConnect = r.validate
	cc.OnPgError = keepConnection
	if cc.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		pc.AfterConnect = checkQuoting
	}
	if r.pooler { // would hand them to a session that others use next
		clear(cc.RuntimeParams)
		return pc, nil
	}
	maps.Copy(cc.RuntimeParams, map[string]string{
		"application_name":                    cfg.ApplicationName,
		"statement_timeout":                   strconv.FormatInt(Millis(cfg.StatementTimeout), 10),
		"lock_timeout":                        strconv.FormatInt(Millis(cfg.LockTimeout), 10),
		"idle_in_transaction_session_timeout": strconv.FormatInt(Millis(cfg.IdleTxTimeout), 10),
		"default_transaction_isolation":       "read committed", // of single statements, which at a stricter level would fail by each other
		"search_path":                         "",
		"TimeZone":                            "UTC",
	})
	return pc, nil
}

// keepConnection tells pgx whether a connection survives an error. Its default looks at the severity that lc_messages translates.
func keepConnection(_ *pgconn.PgConn, pg *pgconn.PgError) bool {
	s := severity(pg)
	return s != "FATAL" && s != "PANIC"
}

// checkQuoting makes sure that values can be quoted on the client's side, which the simple protocol needs.
func checkQuoting(_ context.Context, conn *pgx.Conn) error {
	for name, want := range map[string]string{"standard_conforming_strings": "on", "client_encoding": "UTF8"} {
		if got := conn.PgConn().ParameterStatus(name); got != want {
			return &ConfigError{[]Problem{{
				Field: "ExecMode", Value: `"simple_protocol"`, Problem: fmt.Sprintf("needs %s = %s, and the server has %q", name, want, got),
				Fix: "correct the setting of the role or the DSN, or use exec",
			}}}
		}
	}
	return nil
}
