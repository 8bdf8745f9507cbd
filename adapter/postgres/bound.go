package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/fault"
)

// silence is how much longer than statement_timeout a server may keep quiet before its connection is given up.
const silence = 5 * time.Second

// limit bounds what is sent next, until unlimit. The server keeps statement_timeout itself, so that this fires only where server or
// network have gone silent, or rows are read very slowly. It is a deadline of the socket, since a context would cost a goroutine a
// statement. While rows are open, that of their statement stands.
func (db *DB) limit(server *pgconn.PgConn, statements int, timeout time.Duration) {
	if server.IsBusy() || server.IsClosed() {
		return
	}
	total := min(float64(timeout)*float64(statements), float64(maxTimeout))
	_ = server.Conn().SetDeadline(time.Now().Add(time.Duration(total) + db.silence)) // where it fails, so does the statement
}

// unlimit lifts the bound, unless the rows of its statement are still open.
func unlimit(server *pgconn.PgConn) {
	if !server.IsBusy() && !server.IsClosed() {
		_ = server.Conn().SetDeadline(time.Time{}) // where it fails, so does the next statement
	}
}

// translate is that of the classifier, and knows our own bound: nothing else puts a deadline on the socket without a context's end.
func (db *DB) translate(ctx context.Context, server *pgconn.PgConn, op string, err error) error {
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || endedBy(ctx, err) {
		return db.classifier.Translate(ctx, op, err)
	}
	_ = server.Conn().Close() // pgx would wait for the server's farewell, and the pool's place with it
	d := diagnose(err)
	d.text = fmt.Sprintf("postgres: no answer within statement_timeout and %s more; the connection was closed", db.silence)
	return fault.New(fault.DBStatementTimeout, op, d)
}
