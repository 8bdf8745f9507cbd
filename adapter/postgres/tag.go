package postgres

import (
	"context"
	"strings"

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
func (c *conn) mayUndo(sql string, args int) {
	if args > 0 || c.witness == nil { // with arguments it is one statement, and none that ends or undoes anything
		return
	}
	if lower := strings.ToLower(sql); strings.Contains(lower, "rollback") || strings.Contains(lower, "chain") {
		c.witness = nil
	}
}

// commits reports whether sql, one statement, is a COMMIT.
func commits(sql string) bool {
	word, _, _ := strings.Cut(strings.TrimLeft(sql, " \t\r\n"), " ")
	word = strings.TrimRight(strings.ToLower(word), "; \t\r\n")
	return word == "commit" || word == "end"
}
