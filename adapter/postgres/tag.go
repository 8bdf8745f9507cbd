package postgres

import (
	"context"
	"regexp"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ran takes note of what a statement of fn's did to the transaction itself. COMMIT is never fn's; AND CHAIN hides it from the status.
// ROLLBACK is also the tag of ROLLBACK TO SAVEPOINT, which is fn's right, but may have undone the witness's row.
func (c *conn) ran(tag string) {
	switch tag {
	case "COMMIT":
		c.ended = true
	case "ROLLBACK":
		c.witness = nil
	}
}

// exec0 is pgx's Exec without arguments, except that it looks at the tag of each statement in sql.
func (c *conn) exec0(ctx context.Context, sql string) (tag pgconn.CommandTag, err error) {
	results := c.server().Exec(ctx, sql)
	for results.NextResult() {
		tag, _ = results.ResultReader().Close()
		c.ran(tag.String())
	}
	return tag, results.Close()
}

// mayUndo forgets the witness before what may hold several statements, whose tags are not all seen, if one could roll its row back.
func (c *conn) mayUndo(sql string, args []any) {
	if c.witness != nil && !c.single(args) && undoing.MatchString(sql) {
		c.witness = nil
	}
}

var undoing = regexp.MustCompile(`(?i)\b(rollback|chain)\b`)

// single reports whether pgx sends sql with args as one statement, and none that ends or undoes anything: values can go with no other. Without
// any, and where the mode or an option says so, it sends mere text.
func (c *conn) single(args []any) bool {
	if len(args) == 0 || c.db.cfg.ExecMode == "simple_protocol" {
		return false
	}
	switch args[0].(type) {
	case pgx.QueryExecMode, pgx.QueryRewriter, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
		return false
	}
	return true
}

// modesOnly reports whether args hold nothing that could be sent.
func modesOnly(args []any) bool {
	return !slices.ContainsFunc(args, func(a any) bool { _, mode := a.(pgx.QueryExecMode); return !mode })
}

// commits reports whether sql begins with a COMMIT.
func commits(sql string) bool { return committing.MatchString(sql) }

// committing allows for comments in front, which sqlc writes. One with another inside is not seen.
var committing = regexp.MustCompile(`(?i)^(\s|--[^\n]*\n|/\*(?s:.*?)\*/)*(commit|end)\b`)
