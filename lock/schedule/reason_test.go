package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
)

type quotingError struct{ value string }

func (e quotingError) Error() string { return e.value }

func TestAReasonHoldsNoValue(t *testing.T) {
	const canary = "canary7"
	deep := error(quotingError{canary})
	for range 100 {
		deep = fault.New(fault.DBLockTimeout, "postgres.Exec", deep)
	}
	for want, err := range map[string]error{
		"INTERNAL: schedule.quotingError":                fmt.Errorf("on %s: %w", canary, quotingError{canary}),
		"INTERNAL: *errors.errorString":                  errors.Join(errors.New(canary), quotingError{canary}),
		"orders.Load: NOT_FOUND":                         fault.New(fault.NotFound, "orders.Load", quotingError{canary}),
		"DB_UNIQUE_VIOLATION":                            fault.New(fault.DBUniqueViolation, "the key "+canary, nil),
		"INTERNAL: panic of type string":                 &PanicError{Value: canary},
		"INTERNAL: the job ended its goroutine":          errGoexit,
		"orders.Expire: INTERNAL: schedule.quotingError": fault.New(fault.Internal, "orders.Expire", quotingError{canary}),
	} {
		require.Equal(t, want, reason(err))
	}
	long := reason(deep)
	require.Len(t, []rune(long), 500)
	require.True(t, strings.HasSuffix(long, "…"))
	require.NotContains(t, long, canary)
}
