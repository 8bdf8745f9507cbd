package pgidempotency_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/tx"
)

// A statement that has waited for its row judges and sets times by the clock of after the wait: when it began is the past.
func TestTheClockIsReadAfterTheLock(t *testing.T) {
	for name, c := range map[string]struct {
		state idempotency.State
		do    func(f *fixture, ctx context.Context, c idempotency.Claim) error
		want  string // true of a record whose lease ended, and which was changed, while the statement waited
	}{
		"Execute": {idempotency.Claimed, func(f *fixture, ctx context.Context, c idempotency.Claim) error {
			_, err := f.records.Execute(ctx, c, time.Hour, nil)
			return err
		}, `state = 'EXECUTING' and executing_since >= $1 and updated_at >= $1 and lease_expires_at >= $1 + interval '1 hour'`},
		"Renew": {idempotency.Executing, func(f *fixture, ctx context.Context, c idempotency.Claim) error {
			return f.records.Renew(ctx, c, time.Hour)
		}, `updated_at >= $1 and lease_expires_at >= $1 + interval '1 hour'`},
		"Abandon": {idempotency.Executing, func(f *fixture, ctx context.Context, c idempotency.Claim) error {
			_, err := f.records.Abandon(ctx, c)
			return err
		}, `state = 'ABANDONED' and updated_at >= $1`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "")
			claim := f.claim(t, request("a"))
			if c.state == idempotency.Executing {
				var err error
				claim, err = f.records.Execute(t.Context(), claim, time.Hour, nil)
				require.NoError(t, err)
			}
			done := make(chan error, 1)
			var meanwhile time.Time
			require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, holder *tx.Tx) error {
				q, err := postgres.Querier(holder)
				require.NoError(t, err)
				_, err = q.Exec(ctx, `select from caskeleton.idempotency_record for update`)
				require.NoError(t, err)
				go func() { done <- c.do(f, t.Context(), claim) }()
				f.waits(t)
				return q.QueryRow(ctx, `update caskeleton.idempotency_record set lease_expires_at = clock_timestamp() returning lease_expires_at`).Scan(&meanwhile)
			}))
			require.NoError(t, <-done)
			var so bool
			require.NoError(t, f.db.QueryRow(t.Context(), `select `+c.want+` from caskeleton.idempotency_record`, meanwhile).Scan(&so))
			require.True(t, so)
		})
	}
}

// Somebody is at an execution whose record is locked.
func TestExpireWaitsForNobody(t *testing.T) {
	f := newFixture(t, "")
	_, err := f.records.Execute(t.Context(), f.claim(t, request("a")), time.Hour, nil)
	require.NoError(t, err)
	f.expire(t)
	require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, holder *tx.Tx) error {
		q, err := postgres.Querier(holder)
		require.NoError(t, err)
		_, err = q.Exec(ctx, `select from caskeleton.idempotency_record for update`)
		require.NoError(t, err)
		n, err := f.records.Expire(t.Context(), 10)
		require.NoError(t, err, "it waited until the lock timeout")
		require.Zero(t, n)
		return nil
	}))
	n, err := f.records.Expire(t.Context(), 10)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// Who is asked to abandon an execution while it is being renewed looks again when it is.
func TestAnExecutionThatIsRenewedMeanwhileIsNotAbandoned(t *testing.T) {
	f := newFixture(t, "")
	c, err := f.records.Execute(t.Context(), f.claim(t, request("a")), time.Hour, nil)
	require.NoError(t, err)
	f.expire(t)
	type answer struct {
		marked bool
		err    error
	}
	done := make(chan answer, 1)
	require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, renewing *tx.Tx) error {
		q, err := postgres.Querier(renewing)
		require.NoError(t, err)
		_, err = q.Exec(ctx, `update caskeleton.idempotency_record set lease_expires_at = clock_timestamp() + interval '1 hour'`)
		require.NoError(t, err)
		go func() {
			marked, err := f.records.Abandon(t.Context(), c)
			done <- answer{marked, err}
		}()
		f.waits(t)
		return nil
	}))
	require.Equal(t, answer{false, nil}, <-done)
	rec, _, err := f.records.Claim(t.Context(), request("b"))
	require.NoError(t, err)
	require.Equal(t, idempotency.Executing, rec.State)
}
