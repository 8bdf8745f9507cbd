package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/tx"
)

// neverSentError is what pgconn says of an error that came before anything was written.
type neverSentError struct{ error }

func (neverSentError) SafeToRetry() bool { return true }
func (e neverSentError) Unwrap() error   { return e.error }

func TestCommitOutcome(t *testing.T) {
	pg := func(severity, state string) error {
		return &pgconn.PgError{Severity: "übersetzt", SeverityUnlocalized: severity, Code: state}
	}
	for _, c := range []struct {
		name   string
		err    error
		status byte
		want   verdict
	}{
		{"answered by ROLLBACK", pgx.ErrTxCommitRollback, 'I', rolledBack},
		{"deferred constraint", pg("ERROR", "23505"), 'I', notCommitted},
		{"serialization failure", pg("ERROR", "40001"), 'I', notCommitted},
		{"statement timeout", pg("ERROR", "57014"), 'I', notCommitted},
		{"error, session in an unknown state", pg("ERROR", "23505"), 'T', unknown},
		{"error, transaction still there", pg("ERROR", "23505"), 'E', unknown},
		{"class 08 from a pooler", pg("ERROR", "08006"), 'I', unknown},
		{"transaction_resolution_unknown", pg("ERROR", "08007"), 'I', unknown},
		{"statement_completion_unknown", pg("ERROR", "40003"), 'I', unknown},
		{"context done before COMMIT was sent", neverSentError{context.DeadlineExceeded}, 'T', notCommitted},
		{"canceled before COMMIT was sent", neverSentError{context.Canceled}, 'T', notCommitted},
		{"connection closed before", neverSentError{pgconn.ErrConnClosed}, 'T', notCommitted},
		{"idle in transaction timeout", pg("FATAL", "25P03"), 'T', notCommitted},
		{"transaction timeout", pg("FATAL", "25P04"), 'T', unknown},
		{"terminated by an administrator", pg("FATAL", "57P01"), 'T', unknown},
		{"crash of another session", pg("FATAL", "57P02"), 'T', unknown},
		{"protocol violation from a pooler", pg("FATAL", "08P01"), 'T', unknown},
		{"panic", pg("PANIC", "XX000"), 'T', unknown},
		{"severity that only looks right", &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "FATAL", Code: "23505"}, 'I', unknown},
		{"cut", io.ErrUnexpectedEOF, 'T', unknown},
		{"closed", io.EOF, 'T', unknown},
		{"closed while the answer was awaited", pgconn.ErrConnClosed, 'T', unknown},
		{"reset", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, 'T', unknown},
		{"canceled while the answer was awaited", context.Canceled, 'T', unknown},
		{"timed out while the answer was awaited", fmt.Errorf("timeout: %w", context.DeadlineExceeded), 'T', unknown},
		{"anything else", errors.New("?"), 'I', unknown},
	} {
		require.Equal(t, c.want, outcome(c.err, c.status), c.name)
		require.Equal(t, c.want, outcome(fmt.Errorf("wrapped: %w", c.err), c.status), c.name)
	}
}

func TestBeginIsOneMessage(t *testing.T) {
	for want, o := range map[string]tx.BeginOptions{
		"begin isolation level read committed":                    {},
		"begin isolation level repeatable read read only; select": {Options: tx.Options{Isolation: tx.RepeatableRead}, ReadOnly: true},
		"begin isolation level serializable; set local statement_timeout = 1500; set local lock_timeout = 1; set local idle_in_transaction_session_timeout = 2000": {Options: tx.Options{
			Isolation: tx.Serializable, StatementTimeout: 1500 * time.Millisecond, LockTimeout: time.Microsecond, IdleTimeout: 2 * time.Second,
		}},
	} {
		got, err := beginSQL(o)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for field, o := range map[string]tx.Options{
		"Isolation": {Isolation: 7}, "StatementTimeout": {StatementTimeout: -1}, "LockTimeout": {LockTimeout: maxTimeout + 1}, "IdleTimeout": {IdleTimeout: -time.Hour},
	} {
		_, err := beginSQL(tx.BeginOptions{Options: o})
		require.ErrorContains(t, err, field)
	}
}

// Behind a pooler the same message carries what a direct connection was given when it began.
func TestBeginBehindAPoolerIsOneMessage(t *testing.T) {
	db := &DB{cfg: Config{DSN: someDSN, StatementTimeout: 9 * time.Second}.withDefaults(), route: route{pooler: true}}
	o, settings := db.inBegin(tx.BeginOptions{Options: tx.Options{LockTimeout: time.Second}})
	got, err := beginSQL(o)
	require.NoError(t, err)
	require.Equal(t, "begin isolation level read committed; set local statement_timeout = 9000; set local lock_timeout = 1000; "+
		"set local idle_in_transaction_session_timeout = 10000; set local search_path = ''; set local timezone = 'UTC'", got+settings)

	o, _ = db.inBegin(tx.BeginOptions{})
	require.Equal(t, tx.Options{StatementTimeout: 9 * time.Second, LockTimeout: 3 * time.Second, IdleTimeout: 10 * time.Second}, o.Options, "none is unlimited")
}
