package canarytest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/memory"
	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/pginbox"
	"caskeleton.dev/idempotency"
	"caskeleton.dev/inbox"
	"caskeleton.dev/lock"
	"caskeleton.dev/lock/schedule"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

// The kit's own drivers keep what a server says out of their errors' texts. These, of somebody else's, do not.

var errQuoting = fmt.Errorf("%s: %w", canary, errors.New(canary))

type quotingLocks struct{ lock.Driver }

func (quotingLocks) Renew(context.Context, lock.Key, lock.Token, time.Duration) (bool, error) {
	return false, errQuoting
}

func (quotingLocks) Release(context.Context, lock.Key, lock.Token) (lock.Freed, error) {
	return 0, errQuoting
}

func (quotingLocks) Listen(context.Context, func(), func(lock.Digest)) error { return errQuoting }

type quotingJobs struct{ schedule.Driver }

func (quotingJobs) Now(context.Context) (time.Time, error) { return time.Time{}, errQuoting }

type quotingOutbox struct{ outbox.Driver }

func (quotingOutbox) Claim(context.Context, outbox.ClaimRequest) ([]outbox.Claim, error) {
	return nil, errQuoting
}

func (quotingOutbox) NextDue(context.Context) (in time.Duration, at time.Time, ok bool, err error) {
	return 0, time.Time{}, false, errQuoting
}

type quotingInbox struct{ inbox.Driver }

func (quotingInbox) Attempt(context.Context, string, string) (int, error) { return 0, errQuoting }

type quotingRecords struct{ idempotency.Driver }

func (quotingRecords) Expire(context.Context, int) (int, error) { return 0, errQuoting }

func (quotingRecords) Reap(context.Context, time.Duration, idempotency.Cursor, int) (int, idempotency.Cursor, error) {
	return 0, idempotency.Cursor{}, errQuoting
}

func TestNothingOfADriver(t *testing.T) {
	w := newWatch(t)
	db := w.open(t, postgres.Config{}, migrations.Core(), migrations.Inbox())
	const text = `"error":"*errors.errorString"`

	locker, err := lock.New(quotingLocks{memory.NewLocks(nil)}, &lock.Options{Meter: w.meter, Logger: w.log, Lease: 3 * time.Second})
	require.NoError(t, err)
	require.ErrorIs(t, locker.Do(w.ctx, "key", nil, func(context.Context) error { return errQuoting }), errQuoting)
	lease, err := locker.Acquire(w.ctx, "held", nil)
	require.NoError(t, err)
	w.until(t, lease.KeepAlive, "could not be renewed")
	w.until(t, locker.Run, "are not heard")

	s, err := schedule.New(quotingJobs{}, locker, []schedule.Job{{
		Name: "job", When: schedule.Every(time.Minute), AtMost: time.Minute, Run: func(context.Context) error { return nil },
	}}, &schedule.Options{Logger: w.log})
	require.NoError(t, err)
	w.until(t, s.Run, "schedule store fails")

	relay, err := outbox.NewRelay(quotingOutbox{}, publisher(nil), &outbox.RelayOptions{Meter: w.meter, Logger: w.log})
	require.NoError(t, err)
	w.until(t, relay.Run, "outbox store fails")

	in, err := inbox.New(quotingInbox{pginbox.New(db)}, w.runner(t, db), "shipping", &inbox.Options{Meter: w.meter, Logger: w.log})
	require.NoError(t, err)
	w.answer(t, func(ctx context.Context) error {
		_, err := in.Handle(ctx, inbox.Message{ID: "m", Deliveries: 2, Redelivered: true}, func(context.Context, *tx.Tx) error { return errQuoting })
		return err
	})

	keys, err := idempotency.NewKeyring("1", make([]byte, idempotency.MinSecret))
	require.NoError(t, err)
	guard, err := idempotency.New(quotingRecords{}, w.runner(t, db), keys, &idempotency.Options{Meter: w.meter, Logger: w.log})
	require.NoError(t, err)
	reaper, err := idempotency.NewReaper(guard, &idempotency.ReaperOptions{Interval: tick})
	require.NoError(t, err)
	w.until(t, reaper.Run, "not all reaped")

	require.NoError(t, w.runner(t, db).InWrite(w.ctx, func(_ context.Context, t *tx.Tx) error {
		return t.AfterCommit(func(context.Context) error { return errQuoting })
	}))
	w.silent(t, text, "could not be given back", "inbox message not run", "after-commit hook failed")
}
