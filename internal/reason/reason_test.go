package reason_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/internal/reason"
)

const canary = "canary 7"

type quotingError struct{}

func (quotingError) Error() string { return canary }

func TestAReasonHoldsNoValue(t *testing.T) {
	for want, err := range map[string]error{
		"INTERNAL: reason_test.quotingError": fmt.Errorf("on %s: %w", canary, quotingError{}),
		"INTERNAL: *errors.errorString":      errors.Join(errors.New(canary), quotingError{}),
		"INTERNAL: fault.Code":               fault.Internal,
		"DB_DEADLOCK":                        fmt.Errorf("%s: %w", canary, fault.DBDeadlock),
		"NOT_FOUND":                          fault.New(fault.NotFound, canary, nil),
		"REQUEST_INVALID":                    fault.Invalid("", fault.Field{Path: canary, Problem: canary, Fix: canary}),
		"orders.Load: NOT_FOUND: postgres.Exec: DB_DEADLOCK": fault.New(fault.NotFound, "orders.Load",
			fmt.Errorf("%s: %w", canary, fault.New(fault.DBDeadlock, "postgres.Exec", quotingError{}))),
		"a.B: INTERNAL: reason_test.quotingError": fault.New(fault.Internal, "a.B", errors.Join(quotingError{})),
	} {
		require.Equal(t, want, reason.Of(err, ""))
	}
}

func TestWhatIsSafeStandsForTheType(t *testing.T) {
	require.Equal(t, "INTERNAL: panic of type string", reason.Of(quotingError{}, "panic of type string"))
	require.Equal(t, "DB_DEADLOCK: panic of type string", reason.Of(fault.DBDeadlock, "panic of type string"))
}

func TestAReasonIsBounded(t *testing.T) {
	deep := error(quotingError{})
	for range 40 {
		deep = fault.New(fault.NotFound, "shipping.Place", deep)
	}
	require.Equal(t, strings.Repeat("shipping.Place: NOT_FOUND: ", 40)[:499]+"…", reason.Of(deep, ""))
}
