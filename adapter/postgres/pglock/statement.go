package pglock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

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

// What may be known of default_transaction_isolation.
const (
	unasked int32 = iota
	readCommitted
	stricter
)

// one runs a statement that returns at most one row, as often as the server reports a collision, until ctx ends.
func (l *Locks) one(ctx context.Context, sql string, args []any, dest ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := l.once(late, sql, args, dest)
		if late.Err() != nil && errors.Is(err, context.Canceled) {
			return ctx.Err()
		}
		if !errors.Is(err, fault.DBSerializationFailure) && !errors.Is(err, fault.DBDeadlock) {
			return err
		}
		// At READ COMMITTED there is nothing to fail by: the default has changed since it was asked for, or so it seems.
		l.isolation.Store(stricter)
		timer := time.NewTimer(pause/2 + rand.N(pause/2)) //nolint:gosec // no secret
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("pglock: collided until the end: %w: %w", ctx.Err(), err)
		}
	}
}

func (l *Locks) once(ctx context.Context, sql string, args, dest []any) error {
	if l.isolation.Load() == unasked {
		var level string
		if err := l.db.QueryRow(ctx, `select current_setting('default_transaction_isolation')`).Scan(&level); err != nil {
			return err
		}
		known := stricter
		if level == "read committed" {
			known = readCommitted
		}
		l.isolation.Store(known)
	}
	if l.isolation.Load() == readCommitted {
		return l.db.QueryRow(ctx, sql, args...).Scan(dest...)
	}
	return l.explicitly(ctx, sql, args, dest)
}

// explicitly runs a statement at READ COMMITTED, still in one round trip.
func (l *Locks) explicitly(ctx context.Context, sql string, args, dest []any) error {
	b := &pgx.Batch{}
	b.Queue(`begin isolation level read committed`)
	b.Queue(sql, args...)
	b.Queue(`commit`)
	results := l.db.SendBatch(ctx, b)
	defer func() { _ = results.Close() }()
	if _, err := results.Exec(); err != nil {
		return err
	}
	row := results.QueryRow().Scan(dest...)
	if row != nil && !errors.Is(row, pgx.ErrNoRows) {
		return row
	}
	if _, err := results.Exec(); err != nil {
		return err
	}
	if err := results.Close(); err != nil {
		return err
	}
	return row
}
