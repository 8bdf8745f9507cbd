package inbox_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/fault"
	"caskeleton.dev/inbox"
	"caskeleton.dev/tx"
)

func TestOptions(t *testing.T) {
	s := newStore()
	runner, err := tx.NewRunner(s, nil)
	require.NoError(t, err)
	for field, o := range map[string]inbox.Options{
		"MaxAttempts": {MaxAttempts: -1}, "CountFirst": {CountFirst: -1}, "BaseDelay is": {BaseDelay: -1},
		"MaxDelay is -1ns;": {MaxDelay: -1}, "MaxDelay is 24h0m0.000000001s;": {MaxDelay: 24*time.Hour + 1},
		"MaxDelay is 1ns, shorter": {MaxDelay: 1, BaseDelay: 2}, "MaxDelay is 24h0m0s, shorter": {BaseDelay: 25 * time.Hour},
	} {
		_, err := inbox.New(s, runner, "c", &o)
		require.ErrorContains(t, err, field)
	}
	_, err = inbox.New(nil, runner, "c", nil)
	require.ErrorContains(t, err, "a driver and a runner are required")
	_, err = inbox.New(s, nil, "c", nil)
	require.ErrorContains(t, err, "a driver and a runner are required")
	_, err = inbox.New(s, runner, "c", &inbox.Options{BaseDelay: time.Hour})
	require.NoError(t, err)
}

func TestTheDelayGrowsToItsCapWithFullJitter(t *testing.T) {
	in, _ := newInbox(t, newStore(), &inbox.Options{MaxAttempts: math.MaxInt, BaseDelay: time.Second, MaxDelay: 10 * time.Second})
	for deliveries, bound := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 4: 8 * time.Second, 5: 10 * time.Second, 64: 10 * time.Second, math.MaxInt - 1: 10 * time.Second,
	} {
		var low, high bool
		for range 200 { // none of 200 in one half: once in 10^60
			_, err := in.Handle(t.Context(), delivery(deliveries), func(context.Context, *tx.Tx) error { return errBoom })
			requireAgain(t, err, bound)
			after, _ := fault.RetryAfter(err)
			low, high = low || after < bound/2, high || after > bound/2
		}
		require.True(t, low && high, "attempt %d", deliveries)
	}
	_, err := in.Handle(t.Context(), delivery(1), func(context.Context, *tx.Tx) error {
		return &fault.Error{Code: fault.DBUnavailable, After: time.Hour}
	})
	after, _ := fault.RetryAfter(err)
	require.Equal(t, time.Hour, after, "what failed knows better")
}
