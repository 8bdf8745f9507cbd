package fault_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
)

const canary = "canary 7"

type quotingError struct{}

func (quotingError) Error() string { return canary }

// speakingError says what a log may have.
type speakingError struct {
	says  any
	cause error
}

func (speakingError) Error() string          { return canary }
func (e speakingError) Unwrap() error        { return e.cause }
func (e speakingError) LogValue() slog.Value { return slog.AnyValue(e.says) }

// stateError is a driver's that has a SQLSTATE, or pretends to.
type stateError string

func (stateError) Error() string      { return canary }
func (e stateError) SQLState() string { return string(e) }

// opaqueError is a driver's sentinel that stands for a plain one.
type opaqueError struct{ error }

func (e opaqueError) Unwrap() error { return e.error }

func runtimeError() (err error) {
	defer func() { err, _ = recover().(error) }()
	_ = make([]int, 2)[len(canary)]
	return nil
}

func TestAReasonHoldsNoValue(t *testing.T) {
	group := slog.GroupValue(slog.String("sqlstate", "23505"), slog.Any("id", quotingError{}), slog.Any("raw", []string{canary}))
	refused := &net.OpError{Op: "dial", Addr: &net.UnixAddr{Name: canary}, Err: syscall.ECONNREFUSED}
	for want, err := range map[string]error{
		"":                                   nil,
		"fault_test.quotingError":            fmt.Errorf("on %s: %w", canary, quotingError{}),
		"*errors.errorString":                errors.New(canary),
		"fault_test.opaqueError":             fmt.Errorf("%s: %w", canary, opaqueError{errors.New(canary)}),
		"INTERNAL":                           fault.Internal,
		"DB_DEADLOCK":                        fmt.Errorf("%s: %w", canary, fault.DBDeadlock),
		"NOT_FOUND":                          fault.New(fault.NotFound, canary, errors.New(canary)),
		"REQUEST_INVALID":                    fault.Invalid("", fault.Field{Path: canary, Problem: canary, Fix: canary}),
		"a.B: INTERNAL: *errors.errorString": fault.New(fault.Internal, "a.B", errors.New(canary)),
		"NOT_FOUND: sql.Scanner":             fault.New(fault.NotFound, strings.Repeat("x", 81), speakingError{says: fault.Text("sql.Scanner")}),
		"context canceled":                   fmt.Errorf("%s: %w", canary, context.Canceled),
		"context deadline exceeded":          context.DeadlineExceeded,
		"unexpected EOF":                     io.ErrUnexpectedEOF,
		"connection refused":                 refused,
		"sqlstate=22P02 (*pgconn.PgError)":   fmt.Errorf("%s: %w", canary, &pgconn.PgError{Code: "22P02", Message: canary, Detail: canary}),
		"fault_test.stateError":              stateError(canary),
		"runtime error: index out of range [8] with length 2":    runtimeError(),
		"fault_test.quotingError; *errors.errorString":           errors.Join(quotingError{}, errors.New(canary)),
		"DB_DEADLOCK; fault_test.quotingError":                   fmt.Errorf("%s: %w: %w", canary, fault.DBDeadlock, quotingError{}),
		"the queue is closed":                                    fmt.Errorf("%s: %w", canary, fault.Text("the queue is closed")),
		"order 7 is shipped":                                     speakingError{says: "order 7 is shipped", cause: quotingError{}},
		"sqlstate=23505 id=fault_test.quotingError raw=[]string": speakingError{says: group},
		"NOT_FOUND: order 7 is gone":                             speakingError{says: "order 7 is gone", cause: fault.NotFound},
		"2 of 3 rows: fault_test.quotingError":                   fault.Textf("%d of %d rows: %w", 2, 3, quotingError{}),
		"stream core: a.B: DB_DEADLOCK":                          fault.Textf("stream %s: %w", "core", fault.New(fault.DBDeadlock, "a.B", nil)),
		"orders.Load: NOT_FOUND: postgres.Exec: DB_DEADLOCK: fault_test.quotingError": fault.New(fault.NotFound, "orders.Load",
			fmt.Errorf("%s: %w", canary, fault.New(fault.DBDeadlock, "postgres.Exec", quotingError{}))),
	} {
		require.Equal(t, want, fault.Reason(err))
	}
}

func TestATypeThatFailsToSpeak(t *testing.T) {
	why := fault.Reason(speakingError{says: panickingValuer{}})
	require.Equal(t, "*errors.errorString", why)
}

type panickingValuer struct{}

func (panickingValuer) LogValue() slog.Value { panic(canary) }

func TestAReasonIsBounded(t *testing.T) {
	deep := error(quotingError{})
	for range 40 {
		deep = fault.New(fault.NotFound, "shipping.Place", deep)
	}
	require.Equal(t, strings.Repeat("shipping.Place: NOT_FOUND: ", 40)[:497]+"…", fault.Reason(deep))

	wide := fault.Reason(fault.Text(strings.Repeat("é", 400) + "\x00"))
	require.Len(t, wide, 499, "it is cut between characters")
	require.True(t, utf8.ValidString(wide))
	require.Equal(t, "two  lines, é", fault.Reason(fault.Text("two\r\nlines,\xff é")))
}

func TestTextfWraps(t *testing.T) {
	err := fault.Textf("looking for %d: %w: %w", 7, sql.ErrNoRows, fault.NotFound)
	require.EqualError(t, err, "looking for 7: sql: no rows in result set: NOT_FOUND")
	require.ErrorIs(t, err, sql.ErrNoRows)
	require.ErrorIs(t, err, fault.NotFound)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
}

// What a logger gets that is given the error itself.
func TestErrorsLogWithoutValues(t *testing.T) {
	for want, err := range map[string]error{
		"error.code=NOT_FOUND error.op=a.B error.cause=fault_test.quotingError": fault.New(fault.NotFound, "a.B", fmt.Errorf("%s: %w", canary, quotingError{})),
		"error.code=NOT_FOUND\n":                  fault.New(fault.NotFound, canary, nil),
		`error="the queue is closed"`:             fault.Text("the queue is closed"),
		`error="3 left: fault_test.quotingError"`: fault.Textf("%d left: %w", 3, quotingError{}),
	} {
		var b strings.Builder
		slog.New(slog.NewTextHandler(&b, nil)).ErrorContext(t.Context(), "failed", "error", err)
		require.Contains(t, b.String(), want)
		require.NotContains(t, b.String(), canary)
	}
}
