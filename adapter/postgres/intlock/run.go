package intlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"caskeleton.dev/fault"
	"caskeleton.dev/lock"
)

// Pauses after a collision, at first and at most.
const (
	firstPause   = time.Millisecond
	longestPause = 50 * time.Millisecond
)

// grace is how long an answer is waited for after the end of the caller's context. A statement that is broken off costs a connection and an error in
// the server's log, and may take effect after the release that is to undo it.
const grace = time.Second

// run makes a statement about the row of k. One that collided with others runs again, within ctx; one that does not fit the table is explained.
func (s *Locks) run(ctx context.Context, k lock.Key, statement func(ctx context.Context, region, key string) error) error {
	region, key, err := rowOf(k)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := statement(late, region, key)
		if late.Err() != nil && errors.Is(err, late.Err()) {
			return ctx.Err()
		}
		if !errors.Is(err, fault.DBSerializationFailure) && !errors.Is(err, fault.DBDeadlock) {
			return s.explain(late, err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause/2)): //nolint:gosec // spreading load needs no secrecy
		}
	}
}

// explain puts what Check finds in front of an error that says of the statement, or of a row, that it does not fit the table.
func (s *Locks) explain(ctx context.Context, err error) error {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !strings.Contains("22 23 3F 42", pg.Code[:2]) {
		return err
	}
	if why := s.Check(ctx); why != nil {
		return &tableError{why, err}
	}
	return err
}

// tableError tells the cause in words and keeps the server's.
type tableError struct{ why, cause error }

func (e *tableError) Error() string   { return e.why.Error() }
func (e *tableError) Unwrap() []error { return []error{e.why, e.cause} }
