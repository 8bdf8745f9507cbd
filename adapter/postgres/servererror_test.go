package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
)

// stateError is of a driver that tells the SQLSTATE and nothing else.
type stateError string

func (e stateError) Error() string    { return "secret " + string(e) }
func (e stateError) SQLState() string { return string(e) }

// fieldsError is of one that tells the protocol's fields, as lib/pq does.
type fieldsError map[byte]string

func (e fieldsError) Error() string         { return "secret" }
func (e fieldsError) SQLState() string      { return e['C'] }
func (e fieldsError) Get(field byte) string { return e[field] }

func TestErrorsOfOtherDrivers(t *testing.T) {
	kit := kitClassifier(t)
	for _, row := range table {
		for _, state := range row.states {
			code, ok := kit.Classify(fmt.Errorf("wrapped: %w", stateError(state)))
			require.True(t, ok, state)
			require.Equal(t, row.code, code, state)
		}
	}
	for _, unknown := range []string{"", "235", "99999", "0A000"} {
		_, ok := kit.Classify(stateError(unknown))
		require.False(t, ok, unknown)
	}
	code, _ := kit.Classify(stateError("23514"))
	require.Equal(t, fault.DBCheckViolation, code, "it may have a name that the driver does not tell")
	code, _ = kit.Classify(fieldsError{'C': "23514", 'R': "ExecFindPartition"})
	require.Equal(t, fault.DBServerFault, code)

	err := kit.Translate(t.Context(), "orders.Add", fieldsError{
		'C': "23505", 'S': "ERROR", 's': "shop", 't': "customers", 'c': "email", 'n': "customers_email_key", 'd': "text", 'R': "_bt_check_unique",
		'M': "secret", 'D': "secret", 'H': "secret", 'W': "secret",
	})
	require.ErrorIs(t, err, fault.DBUniqueViolation)
	require.EqualError(t, err, "orders.Add: DB_UNIQUE_VIOLATION: postgres: SQLSTATE 23505 severity=ERROR schema=shop table=customers column=email "+
		"constraint=customers_email_key data_type=text routine=_bt_check_unique")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, context.Canceled, kit.Translate(ended, "orders.Add", stateError("57014")))
	require.ErrorIs(t, kit.Translate(ended, "orders.Add", stateError("23505")), fault.DBUniqueViolation)
}

func TestTheServersOwnErrorIsNotCopied(t *testing.T) {
	pg := &pgconn.PgError{Code: "23505"}
	got, ok := serverError(pg)
	require.True(t, ok)
	require.Same(t, pg, got)
	got, ok = serverError(fmt.Errorf("wrapped: %w", pg))
	require.True(t, ok)
	require.Same(t, pg, got)
	_, ok = serverError(nil)
	require.False(t, ok)
}
