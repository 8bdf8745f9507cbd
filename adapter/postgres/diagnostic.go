package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Diagnostic is what a log may know about an error of pgx or PostgreSQL: where it is, not what was in it. The server's message,
// detail, hint and context, SQL, parameters, hosts and DSNs are left out, since each may hold a user's value or a secret. The fields
// are empty where the error has no SQLSTATE. Unwrap returns the original, whose own text must not be logged.
//
//nolint:errname // it describes the error that it wraps, and is returned as the cause of a fault.Error
type Diagnostic struct {
	SQLSTATE, Severity                          string
	Schema, Table, Column, Constraint, DataType string
	Routine                                     string // the server's C function that raised the error
	advice, text                                string
	err                                         error
}

// Diagnose returns err with the text of a [Diagnostic] and without a code, for errors that do not come from a [*DB]; nil for nil.
func Diagnose(err error) error {
	if err == nil {
		return nil
	}
	return diagnose(err)
}

func diagnose(err error) *Diagnostic {
	d := &Diagnostic{err: err}
	prefix := "postgres: "
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		prefix = "postgres: connect: "
	}
	pg, ok := serverError(err)
	if !ok {
		d.text = prefix + reason(err)
		return d
	}
	d.SQLSTATE, d.Severity, d.Routine = pg.Code, severity(pg), pg.Routine
	d.Schema, d.Table, d.Column, d.Constraint, d.DataType = pg.SchemaName, pg.TableName, pg.ColumnName, pg.ConstraintName, pg.DataTypeName
	var b strings.Builder
	b.WriteString(prefix + "SQLSTATE " + d.SQLSTATE)
	for _, a := range d.attrs()[1:] {
		fmt.Fprintf(&b, " %s=%s", a.Key, a.Value)
	}
	if d.advice = advice(d.SQLSTATE); d.advice != "" {
		b.WriteString(": " + d.advice)
	}
	d.text = b.String()
	return d
}

// advice is for SQLSTATEs whose error has no field with the name that is wrong.
func advice(state string) string {
	switch state {
	case "42P01":
		return "no such table: the kit's sessions have an empty search_path, so its name needs its schema; or a migration has yet to run"
	case "42883":
		return "no such function or operator for these types: the kit's sessions have an empty search_path, so its name needs its schema"
	case "42704":
		return "no such type, role or setting: the kit's sessions have an empty search_path, so the name of a type needs its schema"
	case "25P02":
		return "an earlier statement of the transaction failed: return its error, or run it in a savepoint"
	}
	return ""
}

// Error returns the text for the log.
func (d *Diagnostic) Error() string { return d.text }

// GoString keeps %#v from printing the original.
func (d *Diagnostic) GoString() string { return d.text }

// Unwrap returns the original error.
func (d *Diagnostic) Unwrap() error { return d.err }

// LogValue makes a diagnostic log as its parts.
func (d *Diagnostic) LogValue() slog.Value {
	if d.SQLSTATE == "" {
		return slog.StringValue(d.text)
	}
	attrs := d.attrs()
	if d.advice != "" {
		attrs = append(attrs, slog.String("advice", d.advice))
	}
	return slog.GroupValue(attrs...)
}

func (d *Diagnostic) attrs() []slog.Attr {
	attrs := []slog.Attr{slog.String("sqlstate", d.SQLSTATE)}
	for _, f := range [][2]string{
		{"severity", d.Severity},
		{"schema", d.Schema},
		{"table", d.Table},
		{"column", d.Column},
		{"constraint", d.Constraint},
		{"data_type", d.DataType},
		{"routine", d.Routine},
	} {
		if f[1] != "" {
			attrs = append(attrs, slog.String(f[0], f[1]))
		}
	}
	return attrs
}

// severity is the one that lc_messages does not translate.
func severity(pg *pgconn.PgError) string {
	if pg.SeverityUnlocalized != "" {
		return pg.SeverityUnlocalized
	}
	return pg.Severity
}

// reason describes an error that has no SQLSTATE without repeating its text.
func reason(err error) string {
	var (
		scan  pgx.ScanArgError
		errno syscall.Errno
		dns   *net.DNSError
		cert  *tls.CertificateVerificationError
		parse *pgconn.ParseConfigError
	)
	switch {
	case errors.As(err, &scan):
		return fmt.Sprintf("column %d (%s) cannot be scanned into its destination", scan.ColumnIndex, scan.FieldName)
	case errors.As(err, &parse):
		return "the DSN cannot be parsed"
	case errors.As(err, &dns):
		return "the host name cannot be resolved"
	case errors.As(err, &cert):
		return certificate(cert.Err)
	case strings.Contains(err.Error(), "server refused TLS connection"): // pgconn's, which has no type
		return "the server does not speak TLS, which the DSN asks for"
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return "timed out"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, ErrPooler):
		return "the connection leads through a pooler, and led to the server itself at the start; start the service again"
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return "the server is read-only and a read-write one is required"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection"
	case errors.Is(err, pgconn.ErrConnClosed), errors.Is(err, net.ErrClosed), errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone):
		return "the connection is closed"
	case errors.Is(err, pgx.ErrTxClosed):
		return "the transaction has ended"
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return "COMMIT was answered by ROLLBACK: a statement had failed and its error was swallowed"
	case pgconn.SafeToRetry(err):
		return "nothing was sent, the connection is busy; close rows before the next statement"
	}
	return argument(err)
}

// certificate says why a server's was refused. The errors' own texts name hosts and authorities.
func certificate(err error) string {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server's certificate is not for the host of the DSN"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the server's certificate is signed by an authority that is not known here; name its file in sslrootcert"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "the server's certificate has expired, or is not valid yet"
	}
	return fmt.Sprintf("the server's certificate is not accepted (%T)", err)
}

// argument reads the numbers, and no more, out of pgx's errors about arguments and destinations, which have no type.
func argument(err error) string {
	var a, b int
	if n, _ := fmt.Sscanf(err.Error(), "failed to encode args[%d]", &a); n == 1 {
		return fmt.Sprintf("argument $%d cannot be encoded for its parameter", a+1)
	}
	if n, _ := fmt.Sscanf(err.Error(), "expected %d arguments, got %d", &a, &b); n == 2 {
		return fmt.Sprintf("expected %d arguments, got %d", a, b)
	}
	if n, _ := fmt.Sscanf(err.Error(), "number of field descriptions must equal number of destinations, got %d and %d", &a, &b); n == 2 {
		return fmt.Sprintf("the row has %d columns, and %d destinations were given", a, b)
	}
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return fmt.Sprintf("%T (its text may hold values and is left out)", err)
}
