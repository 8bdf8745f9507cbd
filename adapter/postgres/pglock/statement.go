package pglock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"caskeleton.dev/fault"
)

// What a collision waits before its next try, twice as long each time up to the limit, and each time a random part of it.
const (
	firstPause = 2 * time.Millisecond
	maxPause   = 50 * time.Millisecond
)

// grace is how long an answer is waited for after the end of the caller's context. To break off would cost a connection, leave an ERROR in
// the server's log, and perhaps a statement that takes effect after the release that is to undo it.
const grace = time.Second

// one runs a statement that returns at most one row, as often as the server reports a collision, until ctx ends.
func (l *Locks) one(ctx context.Context, sql string, args []any, dest ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := l.db.QueryRow(late, sql, args...).Scan(dest...)
		if late.Err() != nil && errors.Is(err, context.Canceled) {
			return ctx.Err()
		}
		if !errors.Is(err, fault.DBSerializationFailure) && !errors.Is(err, fault.DBDeadlock) {
			return err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2)) //nolint:gosec // no secret
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("pglock: collided until the end: %w: %w", ctx.Err(), err)
		}
	}
}
