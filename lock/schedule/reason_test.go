package schedule

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
)

func TestAReasonHoldsNoValue(t *testing.T) {
	for want, err := range map[string]error{
		"*errors.errorString":         errors.New("canary"),
		"panic of type string":        &PanicError{Value: "canary"},
		"the job ended its goroutine": errGoexit,
	} {
		require.Equal(t, want, fault.Reason(err))
	}
}
