package pgoutbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgoutbox"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/outbox"
	"caskeleton.dev/tx"
)

var execModes = pgtest.ExecModes()

// through is the way from a test to its database: none, or a pooler in the end-to-end tests.
var through = func(_ *testing.T, dsn string) string { return dsn }

// fixture is an outbox of its own, reached in one exec mode.
type fixture struct {
	dsn    string
	db     *postgres.DB
	runner *tx.Runner
	driver *pgoutbox.Driver
	outbox *outbox.Outbox
}

func newFixture(t *testing.T, mode string) *fixture {
	t.Helper()
	f := &fixture{dsn: migrationstest.DSN(t, migrations.OutboxStorage(), migrations.OutboxPolling())}
	f.db = open(t, postgres.Config{DSN: through(t, f.dsn), ExecMode: mode, MaxConns: 20, LockTimeout: 5 * time.Second, IdleTxTimeout: 2 * time.Minute})
	var err error
	f.runner, err = tx.NewRunner(f.db, nil)
	require.NoError(t, err)
	f.driver = pgoutbox.New(f.db)
	f.outbox, err = outbox.New(f.driver, nil)
	require.NoError(t, err)
	return f
}

func open(t *testing.T, cfg postgres.Config) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(t.Context(), cfg, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		require.NoError(t, db.Close(ctx))
	})
	return db
}

// lane names the aggregate id of type "order".
func lane(id string) outbox.Lane { return outbox.Lane{AggregateType: "order", AggregateID: id} }

// event happened to that aggregate, and says which one it is in its payload.
func event(id, payload string) outbox.Event {
	return outbox.Event{Type: "order.placed", AggregateType: "order", AggregateID: id, Payload: []byte(payload)}
}

// commit appends events in a transaction of their own.
func (f *fixture) commit(t *testing.T, events ...outbox.Event) {
	t.Helper()
	require.NoError(t, f.append(t.Context(), events...))
}

func (f *fixture) append(ctx context.Context, events ...outbox.Event) error {
	return f.runner.InWrite(ctx, func(ctx context.Context, tr *tx.Tx) error { return f.outbox.Append(ctx, tr, events...) })
}

// open appends events in a transaction that stays open until the function returned is called; that returns the result.
func (f *fixture) open(t *testing.T, o tx.Options, events ...outbox.Event) (end func(result error) error) {
	t.Helper()
	appended, finish, ended := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- f.runner.With(o).InWrite(context.WithoutCancel(t.Context()), func(ctx context.Context, tr *tx.Tx) error {
			err := f.outbox.Append(ctx, tr, events...)
			appended <- err
			if err != nil {
				return err
			}
			return <-finish
		})
	}()
	var once sync.Once
	end = func(result error) (err error) {
		once.Do(func() {
			finish <- result
			err = <-ended
		})
		return err
	}
	t.Cleanup(func() { _ = end(context.Canceled) }) // of a test that failed before
	require.NoError(t, <-appended)
	return end
}

// request claims up to ten lanes of up to ten events, for an hour.
func request(owner string, rung ...outbox.Lane) outbox.ClaimRequest {
	return outbox.ClaimRequest{Owner: owner, Limit: 10, RunSize: 10, Lease: time.Hour, Rung: rung}
}

func (f *fixture) claim(t *testing.T, r outbox.ClaimRequest) []outbox.Claim {
	t.Helper()
	claims, err := f.driver.Claim(t.Context(), r)
	require.NoError(t, err)
	return claims
}

// claimOne claims and expects one lane.
func (f *fixture) claimOne(t *testing.T, r outbox.ClaimRequest) outbox.Claim {
	t.Helper()
	claims := f.claim(t, r)
	require.Len(t, claims, 1)
	return claims[0]
}

// settle expects that no claim was lost.
func (f *fixture) settle(t *testing.T, s ...outbox.Settlement) {
	t.Helper()
	lost, err := f.driver.Settle(t.Context(), s)
	require.NoError(t, err)
	require.Empty(t, lost)
}

// done acknowledges all of a run.
func done(c outbox.Claim) outbox.Settlement { return outbox.Settlement{Claim: c, Acked: len(c.Run)} }

func payloads(c outbox.Claim) []string {
	var all []string
	for _, e := range c.Run {
		all = append(all, string(e.Payload))
	}
	return all
}

// laneRow is what is stored of a lane.
type laneRow struct {
	Next      int64
	Attempt   int
	Looks     int
	Owned     bool
	Held      bool
	Due       bool          // now or before
	In        time.Duration // until due, as of the last statement
	LastError string
	HeadType  string
}

// row reads the lane, nil where there is none.
func (f *fixture) row(t *testing.T, l outbox.Lane) *laneRow {
	t.Helper()
	rows, err := f.db.Query(t.Context(), `select next_sequence, attempt, looks, owner is not null, hold is not null, coalesce(due <= clock_timestamp(), false),
		coalesce((extract(epoch from due - clock_timestamp()) * 1000000)::bigint, 0), coalesce(last_error, ''), coalesce(head_type, '')
		from caskeleton.outbox_lane where aggregatetype = $1 and aggregateid = $2`, l.AggregateType, l.AggregateID)
	require.NoError(t, err)
	defer rows.Close()
	if !rows.Next() {
		require.NoError(t, rows.Err())
		return nil
	}
	var r laneRow
	var us int64
	require.NoError(t, rows.Scan(&r.Next, &r.Attempt, &r.Looks, &r.Owned, &r.Held, &r.Due, &us, &r.LastError, &r.HeadType))
	r.In = time.Duration(us) * time.Microsecond
	return &r
}

func (f *fixture) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	_, err := f.db.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func get[T any](t *testing.T, f *fixture, sql string, args ...any) (v T) {
	t.Helper()
	require.NoError(t, f.db.QueryRow(t.Context(), sql, args...).Scan(&v))
	return v
}

// expire ends all leases and waits.
func (f *fixture) expire(t *testing.T) {
	t.Helper()
	f.exec(t, `update caskeleton.outbox_lane set due = clock_timestamp() - interval '1 second' where due is not null`)
}

// invariant: a lane exists exactly when its counter is not drained.
func (f *fixture) invariant(t *testing.T) {
	t.Helper()
	require.Zero(t, get[int](t, f, `select count(*) from caskeleton.outbox_counter c full join caskeleton.outbox_lane l using (aggregatetype, aggregateid)
		where (l.aggregateid is not null) is distinct from (c.drained_sequence < c.last_sequence)`))
}

// numbered returns events of aggregate a, whose payloads count them.
func numbered(n int) []outbox.Event {
	events := make([]outbox.Event, n)
	for i := range events {
		events[i] = event("a", fmt.Sprint(i+1))
	}
	return events
}
