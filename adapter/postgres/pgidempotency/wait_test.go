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

// A statement that waited while its record became another's changes nothing: its snapshot has the record as it was.
func TestAClaimThatIsLostDuringTheWaitIsStale(t *testing.T) {
	settle := func(from, to idempotency.State, a idempotency.Answer) func(*fixture, context.Context, idempotency.Claim) error {
		return func(f *fixture, ctx context.Context, c idempotency.Claim) error {
			return f.records.Settle(ctx, c, from, to, a)
		}
	}
	within := func(do func(f *fixture, ctx context.Context, tr *tx.Tx, c idempotency.Claim) error) func(*fixture, context.Context, idempotency.Claim) error {
		return func(f *fixture, ctx context.Context, c idempotency.Claim) error {
			return f.runner.InWrite(ctx, func(ctx context.Context, tr *tx.Tx) error { return do(f, ctx, tr, c) })
		}
	}
	small, large := idempotency.Answer{Payload: []byte("x")}, idempotency.Answer{Payload: []byte("x"), Large: true}
	for name, c := range map[string]struct {
		state idempotency.State
		do    func(*fixture, context.Context, idempotency.Claim) error
	}{
		"Execute": {idempotency.Claimed, func(f *fixture, ctx context.Context, c idempotency.Claim) error {
			_, err := f.records.Execute(ctx, c, time.Hour, nil)
			return err
		}},
		"Execute, of several versions": {idempotency.Claimed, func(f *fixture, ctx context.Context, c idempotency.Claim) error {
			_, err := f.records.Execute(ctx, c, time.Hour, []idempotency.Scope{{7}})
			return err
		}},
		"Renew": {idempotency.Executing, func(f *fixture, ctx context.Context, c idempotency.Claim) error {
			return f.records.Renew(ctx, c, time.Hour)
		}},
		"fail":                        {idempotency.Claimed, settle(idempotency.Claimed, idempotency.Failed, small)},
		"release":                     {idempotency.Claimed, settle(idempotency.Claimed, "", idempotency.Answer{})},
		"finish":                      {idempotency.Executing, settle(idempotency.Executing, idempotency.Completed, small)},
		"finish, with a large answer": {idempotency.Executing, settle(idempotency.Executing, idempotency.Completed, large)},
		"Start": {idempotency.Claimed, within(func(f *fixture, ctx context.Context, tr *tx.Tx, c idempotency.Claim) error {
			return f.records.Start(ctx, tr, c, nil)
		})},
		"Start, of several versions": {idempotency.Claimed, within(func(f *fixture, ctx context.Context, tr *tx.Tx, c idempotency.Claim) error {
			return f.records.Start(ctx, tr, c, []idempotency.Scope{{7}})
		})},
		"Complete": {idempotency.Claimed, within(func(f *fixture, ctx context.Context, tr *tx.Tx, c idempotency.Claim) error {
			return f.records.Complete(ctx, tr, c, small)
		})},
		"Complete, with a large answer": {idempotency.Claimed, within(func(f *fixture, ctx context.Context, tr *tx.Tx, c idempotency.Claim) error {
			return f.records.Complete(ctx, tr, c, large)
		})},
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
			require.NoError(t, f.runner.InWrite(t.Context(), func(ctx context.Context, thief *tx.Tx) error {
				q, err := postgres.Querier(thief)
				require.NoError(t, err)
				_, err = q.Exec(ctx, `update caskeleton.idempotency_record set owner = 'thief', revision = revision + 1`)
				require.NoError(t, err)
				go func() { done <- c.do(f, t.Context(), claim) }()
				f.waits(t)
				return nil
			}))
			require.ErrorIs(t, <-done, idempotency.ErrStale)
			claim.Owner, claim.Revision = "thief", claim.Revision+1
			rec, _, err := f.records.Claim(t.Context(), request("b"))
			require.NoError(t, err)
			require.Equal(t, claim, rec.Claim)
			require.Equal(t, c.state, rec.State)
			require.Nil(t, rec.Payload)
		})
	}
}
