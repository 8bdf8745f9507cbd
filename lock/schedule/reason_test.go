package schedule

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAReasonHoldsNoValue(t *testing.T) {
	for want, err := range map[string]error{
		"INTERNAL: *errors.errorString":         errors.New("canary"),
		"INTERNAL: panic of type string":        &PanicError{Value: "canary"},
		"INTERNAL: the job ended its goroutine": errGoexit,
	} {
		require.Equal(t, want, reason(err))
	}
}
