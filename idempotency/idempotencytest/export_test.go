package idempotencytest

import (
	"context"

	"caskeleton.dev/internal/testkit/suite"
)

// DriverChecks is for the test that has them fail.
var DriverChecks = driverChecks

// ResponseChecks is for the test that has them fail.
var ResponseChecks = responseChecks

// Walks makes n sequences, and returns why one does not fit the model.
func Walks(ctx context.Context, s Store, n int, d draw) error {
	return suite.Check[Store]{Name: "model", Run: func(ctx context.Context, s Store) {
		for range n {
			walk(ctx, s, d)
		}
	}}.Err(ctx, s)
}

// Plays returns why what was recorded cannot have come from a store of records.
func Plays(ctx context.Context, s Store, o HistoryOptions) error {
	return suite.Check[Store]{Name: "history", Run: func(ctx context.Context, s Store) { play(ctx, s, o) }}.Err(ctx, s)
}
