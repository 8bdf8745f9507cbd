package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
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

	"caskeleton.dev/fault"
)

// The table of docs "SQLSTATE -> code", by hand: states, code, category, status, retryable.
var table = []struct {
	states   []string
	code     fault.Code
	category fault.Category
	status   int
	retry    bool
}{
	{[]string{"08000", "08001", "08003", "08004", "08006", "08P01", "57P01", "57P02", "57P03", "57P05", "53300"}, fault.DBUnavailable, fault.CategoryTransientDependency, 503, true},
	{[]string{"08007", "40003"}, fault.DBCommitUnknown, fault.CategoryTransientDependency, 503, false},
	{[]string{"40001"}, fault.DBSerializationFailure, fault.CategoryConflict, 409, true},
	{[]string{"40P01"}, fault.DBDeadlock, fault.CategoryConflict, 409, true},
	{[]string{"55P03"}, fault.DBLockTimeout, fault.CategoryConflict, 409, true},
	{[]string{"57014"}, fault.DBQueryCanceled, fault.CategoryTransientDependency, 504, false},
	{[]string{"25P03", "25P04"}, fault.DBTXTimeout, fault.CategoryTransientDependency, 504, false},
	{[]string{"25006"}, fault.DBReadOnly, fault.CategoryTransientDependency, 503, true},
	{[]string{"23505", "23P01"}, fault.DBUniqueViolation, fault.CategoryConflict, 409, false},
	{[]string{"23503", "23001"}, fault.DBForeignKeyViolation, fault.CategoryDataIntegrity, 422, false},
	{[]string{"23502"}, fault.DBNotNullViolation, fault.CategoryDataIntegrity, 422, false},
	{[]string{"44000"}, fault.DBCheckViolation, fault.CategoryDataIntegrity, 422, false},
	{[]string{"22000", "22001", "22003", "22012", "22021", "22P02", "22P05"}, fault.DBInvalidData, fault.CategoryValidation, 422, false},
	{[]string{"26000", "42P05"}, fault.DBStalePlan, fault.CategoryTransientDependency, 503, true},
	{[]string{"28000", "28P01", "3D000", "42501", "57P04"}, fault.DBAccessDenied, fault.CategoryInternal, 500, false},
	{[]string{"53100", "53200", "53400", "54000", "54001", "54011", "58000", "58030", "58P01", "XX000", "XX001", "XX002"}, fault.DBServerFault, fault.CategoryInternal, 500, false},
}

func kitClassifier(tb testing.TB) *Classifier {
	tb.Helper()
	c, err := NewClassifier()
	require.NoError(tb, err)
	return c
}

func TestTable(t *testing.T) {
	kit := kitClassifier(t)
	for _, row := range table {
		require.Equal(t, row.category, row.code.Category(), row.code)
		require.Equal(t, row.status, row.code.Status(), row.code)
		require.Equal(t, row.retry, row.code.Retryable(), row.code)
		for _, state := range row.states {
			err := &pgconn.PgError{Code: state}
			code, ok := kit.Classify(err)
			require.True(t, ok, state)
			require.Equal(t, row.code, code, state)
			require.ErrorIs(t, kit.Translate(t.Context(), "op", fmt.Errorf("wrapped: %w", err)), row.code, state)
		}
	}
}

func TestStatesThatNeedMoreThanTheState(t *testing.T) {
	kit := kitClassifier(t)
	for _, c := range []struct {
		name string
		err  pgconn.PgError
		want error // a code, or nil for none
	}{
		{"a check constraint", pgconn.PgError{Code: "23514", ConstraintName: "items_qty_check"}, fault.DBCheckViolation},
		{"no partition for the row", pgconn.PgError{Code: "23514", Routine: "ExecFindPartition"}, fault.DBServerFault},
		{"a plan that changed", pgconn.PgError{Code: "0A000", Routine: "RevalidateCachedQuery"}, fault.DBStalePlan},
		{"another missing feature", pgconn.PgError{Code: "0A000", Routine: "CheckSelectLocking"}, nil},
	} {
		code, ok := kit.Classify(&c.err)
		require.Equal(t, c.want != nil, ok, c.name)
		if ok {
			require.Equal(t, c.want, code, c.name)
		}
	}
}

func TestNoCodeIsInvented(t *testing.T) {
	kit := kitClassifier(t)
	for _, state := range []string{"42601", "42P01", "25001", "25P02", "23000", "40002", "42P04", "53000", "55000", "57000", "57P00", "P0001", "00000", "01000", "F0000", "HV000", "", "08", "0"} {
		err := &pgconn.PgError{Code: state}
		_, ok := kit.Classify(err)
		require.False(t, ok, state)
		require.Equal(t, fault.Internal, fault.CodeOf(kit.Translate(t.Context(), "op", err)), state)
	}
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, pgconn.ErrConnClosed, pgx.ErrTxClosed, context.DeadlineExceeded, errors.New("other")} {
		_, ok := kit.Classify(err)
		require.False(t, ok, err)
		got := kit.Translate(t.Context(), "op", err)
		require.Equal(t, fault.Internal, fault.CodeOf(got), err)
		require.ErrorIs(t, got, err)
	}
}

func TestTextsOfUnknownErrorsAreLeftOut(t *testing.T) {
	kit := kitClassifier(t)
	for want, err := range map[string]error{
		"*errors.errorString (its text may hold values and is left out)":          fmt.Errorf("outer canary: %w", errors.New("canary")),
		"the DSN cannot be parsed":                                                pgconn.NewParseConfigError("postgres://canary", "canary", errors.New("canary")),
		"argument $2 cannot be encoded for its parameter":                         errors.New("failed to encode args[1]: unable to encode canary"),
		"expected 2 arguments, got 1":                                             errors.New("expected 2 arguments, got 1 canary"),
		"the row has 3 columns, and 1 destinations were given":                    errors.New("number of field descriptions must equal number of destinations, got 3 and 1"),
		"column 1 (name) cannot be scanned into its destination":                  pgx.ScanArgError{ColumnIndex: 1, FieldName: "name", Err: errors.New("canary")},
		"connection refused":                                                      &net.OpError{Op: "dial", Addr: &net.UnixAddr{Name: "canary"}, Err: syscall.ECONNREFUSED},
		"the host name cannot be resolved":                                        &net.DNSError{Err: "canary", Name: "canary"},
		"the server's certificate is not for the host of the DSN":                 &tls.CertificateVerificationError{Err: x509.HostnameError{Host: "canary", Certificate: &x509.Certificate{}}},
		"the server's certificate has expired, or is not valid yet":               &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "canary"}},
		"the server's certificate is not accepted (x509.CertificateInvalidError)": &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.NameMismatch, Detail: "canary"}},
		"the server does not speak TLS, which the DSN asks for":                   errors.New("canary: tls error: server refused TLS connection"),
		"the server closed the connection":                                        fmt.Errorf("canary: %w", io.ErrUnexpectedEOF),
	} {
		got := kit.Translate(t.Context(), "op", err)
		require.EqualError(t, got, "postgres: "+want)
		require.ErrorIs(t, got, err)
	}
}

func TestErrorsThatStayThemselves(t *testing.T) {
	kit := kitClassifier(t)
	require.NoError(t, kit.Translate(t.Context(), "op", nil))
	require.Equal(t, pgx.ErrNoRows, kit.Translate(t.Context(), "op", pgx.ErrNoRows))
	require.ErrorIs(t, kit.Translate(t.Context(), "op", pgx.ErrNoRows), sql.ErrNoRows)
	coded := error(fault.New(fault.NotFound, "orders.Get", &pgconn.PgError{Code: "23505"}))
	require.Equal(t, coded, kit.Translate(t.Context(), "op", coded))
}

func TestContextAgainstServer(t *testing.T) {
	kit := kitClassifier(t)
	expired, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	queryCanceled, duplicate := &pgconn.PgError{Code: "57014"}, &pgconn.PgError{Code: "23505"}

	for _, cause := range []error{queryCanceled, fmt.Errorf("timeout: %w", context.DeadlineExceeded), pgconn.ErrConnClosed} {
		err := kit.Translate(expired, "op", cause)
		require.ErrorIs(t, err, fault.DBStatementTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, cause)
	}
	for _, cause := range []error{queryCanceled, fmt.Errorf("read: %w", context.Canceled), pgconn.ErrConnClosed} {
		require.Equal(t, context.Canceled, kit.Translate(canceled, "op", cause), "the context's error itself")
	}
	for _, ctx := range []context.Context{expired, canceled} { // the server answered first
		require.ErrorIs(t, kit.Translate(ctx, "op", duplicate), fault.DBUniqueViolation)
	}
}

func TestContributions(t *testing.T) {
	kit := kitClassifier(t)
	stock := fault.NewCode(fault.Spec{Name: "STOCK_EMPTY", Category: fault.CategoryConflict, Status: 409, Client: "Sold out.", Hint: "Reorder."})

	c, err := NewClassifier(Contribution{Name: "orders", States: map[string]fault.Code{"OR001": stock, "22P02": stock}, Classes: map[string]fault.Code{"OR": fault.Internal}})
	require.NoError(t, err)
	for state, want := range map[string]fault.Code{"OR001": stock, "OR002": fault.Internal, "22P02": stock, "22P03": fault.DBInvalidData, "23505": fault.DBUniqueViolation} {
		got, ok := c.Classify(&pgconn.PgError{Code: state})
		require.True(t, ok, state)
		require.Equal(t, want, got, state)
	}
	_, ok := kit.Classify(&pgconn.PgError{Code: "OR001"})
	require.False(t, ok, "a contribution reaches only the classifier it was given to")

	for name, more := range map[string][]Contribution{
		"23505":          {{Name: "orders", States: map[string]fault.Code{"23505": fault.DBUniqueViolation}}}, // the same code, even
		"OR001":          {{Name: "orders", States: map[string]fault.Code{"OR001": stock}}, {Name: "stock", States: map[string]fault.Code{"OR001": stock}}},
		"class 22":       {{Name: "orders", Classes: map[string]fault.Code{"22": stock}}},
		`"or001" is not`: {{Name: "orders", States: map[string]fault.Code{"or001": stock}}},
		`"OR" is not`:    {{Name: "orders", States: map[string]fault.Code{"OR": stock}}},
		`"OR1" is not`:   {{Name: "orders", Classes: map[string]fault.Code{"OR1": stock}}},
	} {
		_, err := NewClassifier(more...)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "orders")
	}
}

func TestClassifyDoesNotAllocate(t *testing.T) {
	kit := kitClassifier(t)
	for _, state := range []string{"23505", "08006", "22P02", "42601"} {
		var err error = &pgconn.PgError{Code: state}
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = kit.Classify(err) }), state)
	}
}

func BenchmarkClassify(b *testing.B) {
	kit := kitClassifier(b)
	for _, state := range []string{"23505", "22P02", "42601"} {
		b.Run(state, func(b *testing.B) {
			var err error = &pgconn.PgError{Code: state}
			b.ReportAllocs()
			for b.Loop() {
				_, _ = kit.Classify(err)
			}
		})
	}
}
