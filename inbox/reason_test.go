package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

func TestTheReasonHoldsNoValues(t *testing.T) {
	const canary = "canary 7"
	for want, fn := range map[string]func() error{
		"*errors.errorString": func() error { return errors.New(canary) },
		"postgres.Exec: DB_UNIQUE_VIOLATION": func() error {
			return fmt.Errorf("%s: %w", canary, fault.New(fault.DBUniqueViolation, "postgres.Exec", errors.New(canary)))
		},
		"panic of type string": func() error { panic(canary) },
		"panic: runtime error: index out of range [3] with length 0": func() error { return []error{}[len("abc")] },
	} {
		var log bytes.Buffer
		s := newStore()
		in, _ := newInbox(t, s, &inbox.Options{MaxAttempts: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		m := inbox.Message{ID: "m1", Deliveries: 1, Type: canary, AggregateID: canary, Payload: []byte(canary), Headers: map[string]string{canary: canary}}
		out, err := in.Handle(t.Context(), m, func(context.Context, *tx.Tx) error { return fn() })
		require.NoError(t, err)
		require.Equal(t, inbox.Parked, out)
		require.Equal(t, want, s.rows["shipping/m1"].reason)
		require.Contains(t, log.String(), `msg="inbox message parked, an operator has to settle it" consumer=shipping message_id=m1 attempts=1 error=`)
		require.NotContains(t, log.String(), canary)
		require.Equal(t, strings.Contains(want, "panic"), strings.Contains(log.String(), "reason_test.go"), "the stack of a panic, and of nothing else")
	}
}
