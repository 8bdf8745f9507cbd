package fault_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
)

func TestErrorIsItsCodeThroughAnyWrapping(t *testing.T) {
	cause := errors.New("the cause")
	err := fmt.Errorf("placing an order: %w", fault.New(fault.DBDeadlock, "orders.Place", cause))
	require.ErrorIs(t, err, fault.DBDeadlock)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, fault.DBLockTimeout)
	require.Equal(t, fault.DBDeadlock, fault.CodeOf(err))
	require.True(t, fault.Retryable(err))
	require.Equal(t, 409, fault.StatusOf(err))
}

func TestTheOutermostCodeSpeaks(t *testing.T) {
	err := fault.New(fault.TXRollbackOnly, "tx.Commit", fault.New(fault.DBDeadlock, "orders.Place", nil))
	require.Equal(t, fault.TXRollbackOnly, fault.CodeOf(err))
	require.ErrorIs(t, err, fault.DBDeadlock)
	require.False(t, fault.Retryable(err))
}

func TestABareCodeIsAnError(t *testing.T) {
	err := fmt.Errorf("orders: %w", fault.NotFound)
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	require.Equal(t, "orders: NOT_FOUND", err.Error())
}

func TestWithoutACodeItIsInternal(t *testing.T) {
	require.Equal(t, fault.Internal, fault.CodeOf(errors.New("anything")))
	require.False(t, fault.Retryable(errors.New("anything")))
	require.False(t, fault.Retryable(nil))
	var zero fault.Code
	require.Equal(t, "INTERNAL", zero.String())
	require.ErrorIs(t, fault.New(zero, "op", nil), fault.Internal)
}

func TestRetryAfterAndFieldsAreFoundBelowOtherErrors(t *testing.T) {
	inner := &fault.Error{Code: fault.RequestInvalid, Op: "inner", After: 3 * time.Second, Fields: []fault.Field{{Path: "items", Problem: "is empty"}}}
	err := fault.New(fault.IdempotencyInProgress, "outer", fmt.Errorf("wrapped: %w", inner))
	after, ok := fault.RetryAfter(err)
	require.True(t, ok)
	require.Equal(t, 3*time.Second, after)
	require.Equal(t, inner.Fields, fault.FieldsOf(err))

	_, ok = fault.RetryAfter(fault.New(fault.Internal, "op", nil))
	require.False(t, ok)
	_, ok = fault.RetryAfter(nil)
	require.False(t, ok)
	require.Nil(t, fault.FieldsOf(errors.New("plain")))
}

func TestRequestInvalidHasTwoStatuses(t *testing.T) {
	require.Equal(t, 422, fault.StatusOf(fault.Invalid("orders.Place", fault.Field{Path: "items", Problem: "is empty"})))
	require.Equal(t, 400, fault.StatusOf(fault.Malformed("httpapi.Decode", nil)))
}

func TestLogValueHasThePartsAndNoMore(t *testing.T) {
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Error("failed", "error", fault.New(fault.DBDeadlock, "orders.Place", errors.New("why")))
	require.Contains(t, b.String(), `error.code=DB_DEADLOCK error.op=orders.Place error.cause=*errors.errorString`)
}

func TestNewCodeRefusesABrokenSpec(t *testing.T) {
	good := fault.Spec{Name: "OUT_OF_STOCK", Category: fault.CategoryConflict, Status: 409, Client: "Sold out.", Hint: "Order more."}
	require.Equal(t, "OUT_OF_STOCK", fault.NewCode(good).String())
	for name, spoil := range map[string]func(*fault.Spec){
		"lower case":  func(s *fault.Spec) { s.Name = "out_of_stock" },
		"empty":       func(s *fault.Spec) { s.Name = "" },
		"leading _":   func(s *fault.Spec) { s.Name = "_X" },
		"trailing _":  func(s *fault.Spec) { s.Name = "X_" },
		"category":    func(s *fault.Spec) { s.Category = "SAD" },
		"status":      func(s *fault.Spec) { s.Status = 200 },
		"client text": func(s *fault.Spec) { s.Client = "" },
		"hint":        func(s *fault.Spec) { s.Hint = "" },
	} {
		s := good
		spoil(&s)
		require.Panics(t, func() { _ = fault.NewCode(s) }, name)
	}
}

// Two codes are one only if they come from the same call: a service that happens to choose a name of the kit's has its own.
func TestACodeIsItsOwnWhateverItsName(t *testing.T) {
	spec := fault.Spec{Name: "DB_DEADLOCK", Category: fault.CategoryConflict, Status: 409, Client: "Try again.", Hint: "Nothing to do."}
	own := fault.NewCode(spec)
	require.NotErrorIs(t, fault.New(own, "orders.Place", nil), fault.DBDeadlock)
	require.NotErrorIs(t, fault.New(own, "orders.Place", nil), fault.NewCode(spec))
	require.ErrorIs(t, fault.New(own, "orders.Place", nil), own)
	spec.Name = "OTHER"
	require.Equal(t, "DB_DEADLOCK", own.String(), "a code keeps what it was made of")
}

func TestTheTextNamesTheFieldsAndNotTheFix(t *testing.T) {
	err := fault.Invalid("orders.Place", fault.Field{Path: "items[0].quantity", Problem: "must be positive", Fix: "send 1 or more"}, fault.Field{Path: "note", Problem: "is too long"})
	require.EqualError(t, err, "orders.Place: REQUEST_INVALID: items[0].quantity must be positive: note is too long")
}
