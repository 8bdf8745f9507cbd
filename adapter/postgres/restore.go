package postgres

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"caskeleton.dev/fault"
)

// A SET without LOCAL stays on the session, and would be that of whoever gets the connection next: their role, their limits, their
// search_path. Names that a service prepared itself go as well, and with them pgx's own, whose plans may be of other settings.
const restoreSQL = "reset session authorization; reset all"

// restore gives a session back what Config says. A connection on which that fails is closed. It must still be released. Behind a pooler
// there is nothing to be done: the session may be somebody else's by now.
func (db *DB) restore(ctx context.Context, pooled *pgxpool.Conn) {
	server := pooled.Conn().PgConn()
	if db.route.pooler || server.IsClosed() || server.IsBusy() || server.TxStatus() != txIdle {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := pooled.Conn().DeallocateAll(ctx)
	if err == nil {
		_, err = server.Exec(ctx, restoreSQL).ReadAll()
	}
	if err != nil {
		db.log.WarnContext(ctx, "connection discarded, what SQL has set on it could not be taken back", "error", fault.Reason(err))
		_ = pooled.Conn().Close(ctx)
	}
}

// release gives back a connection that the texts of sql ran on.
func (db *DB) release(ctx context.Context, pooled *pgxpool.Conn, sql ...string) {
	if slices.ContainsFunc(sql, outlasts) {
		db.restore(ctx, pooled)
	}
	pooled.Release()
}

// outlasts reports whether a statement in sql changes the session for longer than its transaction. What a function does, by set_config or
// otherwise, is not seen.
func outlasts(sql string) bool {
	for more := true; more; _, sql, more = strings.Cut(sql, ";") {
		if changing.MatchString(sql) && !passing.MatchString(sql) {
			return true
		}
	}
	return false
}

var (
	changing = regexp.MustCompile(`(?i)^` + blank + `*(?:set|reset|discard|deallocate)\b`)
	passing  = regexp.MustCompile(`(?i)^` + blank + `*set` + blank + `+(?:local|transaction|constraints)\b`)
)
