package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/embedded"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

// pair starts a primary with a table and a standby that streams from it.
func pair(t *testing.T) (primary, standby *embedded.Server) {
	t.Helper()
	primary = pgtest.PrivateServer(t, nil)
	_, err := pgtest.Connect(t, primary.DSN()).Exec(t.Context(), "create table public.note (n int8 primary key); insert into public.note values (1)")
	require.NoError(t, err)
	return primary, pgtest.Standby(t, primary, nil)
}

// becomes waits until the replica's state is as wanted.
func becomes(t *testing.T, db *postgres.DB, want func(s postgres.ReplicaState) bool) postgres.ReplicaState {
	t.Helper()
	require.Eventually(t, func() bool {
		s, ok := db.Replica()
		return ok && want(s)
	}, 30*time.Second, 10*time.Millisecond)
	s, _ := db.Replica()
	return s
}

func serves(s postgres.ReplicaState) bool { return s.Serving }

// place says whether a transaction of these options reads on the standby.
func place(ctx context.Context, t *testing.T, r *tx.Runner, o tx.Options) (onStandby bool) {
	t.Helper()
	onStandby, err := tx.Value(ctx, r.With(o).InReadOnly, func(ctx context.Context, tr *tx.Tx) (recovering bool, err error) {
		q, err := postgres.Querier(tr)
		if err != nil {
			return false, err
		}
		err = q.QueryRow(ctx, "select pg_is_in_recovery()").Scan(&recovering)
		return recovering, err
	})
	require.NoError(t, err)
	return onStandby
}

type lags struct {
	states
	lag []float64
}

func (l *lags) ObserveFloat64(_ metric.Float64Observable, v float64, _ ...metric.ObserveOption) {
	l.lag = append(l.lag, v)
}

func TestReadsOnAReplica(t *testing.T) {
	primary, standby := pair(t)
	m := &meter{}
	db, err := postgres.Open(t.Context(), postgres.Config{DSN: primary.DSN(), ReadDSN: standby.DSN(), MaxReplicaLag: time.Second},
		&postgres.Options{Meter: m, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	closeAtEnd(t, db)
	r, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	s := becomes(t, db, serves)
	require.Empty(t, s.Reason)

	require.True(t, place(t.Context(), t, r, tx.Options{Replica: true}))
	require.True(t, place(t.Context(), t, r, tx.Options{Replica: true, Isolation: tx.RepeatableRead}))
	require.False(t, place(t.Context(), t, r, tx.Options{}), "nobody reads there unasked")
	require.NoError(t, r.InWrite(t.Context(), func(ctx context.Context, _ *tx.Tx) error {
		require.False(t, place(ctx, t, r, tx.Options{Replica: true}), "inside a transaction its own rows are read")
		return nil
	}))
	err = r.With(tx.Options{Replica: true}).InReadOnly(t.Context(), func(ctx context.Context, tr *tx.Tx) error {
		q, err := postgres.Querier(tr)
		require.NoError(t, err)
		_, err = q.Exec(ctx, "insert into public.note values (2)")
		return err
	})
	require.ErrorIs(t, err, tx.ErrReadOnly)

	t.Run("an idle primary makes no lag", func(t *testing.T) {
		exec(t, open(t, postgres.Config{DSN: primary.DSN()}), "insert into public.note values (4)")
		// What was replayed last becomes older than the threshold, and the replica still serves.
		admin := pgtest.Connect(t, standby.DSN())
		require.Eventually(t, func() bool {
			var old bool
			return admin.QueryRow(t.Context(), "select clock_timestamp() - pg_last_xact_replay_timestamp() > interval '1500 milliseconds'").Scan(&old) == nil && old
		}, 30*time.Second, 20*time.Millisecond)
		s := becomes(t, db, func(s postgres.ReplicaState) bool { return s.Serving && s.Lag == 0 })
		require.True(t, s.Serving)
	})
	t.Run("over the threshold the primary serves", func(t *testing.T) {
		admin, writer := pgtest.Connect(t, standby.DSN()), open(t, postgres.Config{DSN: primary.DSN()})
		_, err := admin.Exec(t.Context(), "select pg_wal_replay_pause()")
		require.NoError(t, err)
		exec(t, writer, "insert into public.note values (3)") // received, and not replayed
		s := becomes(t, db, func(s postgres.ReplicaState) bool { return s.Reason == "lagging" })
		require.Greater(t, s.Lag, time.Second)
		require.False(t, place(t.Context(), t, r, tx.Options{Replica: true}))
		l := &lags{}
		require.NoError(t, m.lag(t.Context(), l))
		require.Len(t, l.lag, 1)
		require.Greater(t, l.lag[0], 1.0, "in seconds")

		_, err = admin.Exec(t.Context(), "select pg_wal_replay_resume()")
		require.NoError(t, err)
		becomes(t, db, serves)
		require.True(t, place(t.Context(), t, r, tx.Options{Replica: true}))
	})
	t.Run("one that receives nothing any more lags although it has replayed all", func(t *testing.T) {
		admin := pgtest.Connect(t, standby.DSN())
		_, err := admin.Exec(t.Context(), "alter system set primary_conninfo = ''")
		require.NoError(t, err)
		_, err = admin.Exec(t.Context(), "select pg_reload_conf()")
		require.NoError(t, err)
		becomes(t, db, func(s postgres.ReplicaState) bool { return s.Reason == "lagging" })
		_, err = admin.Exec(t.Context(), "alter system reset primary_conninfo")
		require.NoError(t, err)
	})
	t.Run("one that is gone is not waited for", func(t *testing.T) {
		require.NoError(t, standby.StopImmediate(t.Context()))
		require.False(t, place(t.Context(), t, r, tx.Options{Replica: true}))
		becomes(t, db, func(s postgres.ReplicaState) bool { return s.Reason == "unreachable" && s.Lag < 0 })
		l := &lags{}
		require.NoError(t, m.lag(t.Context(), l))
		require.Empty(t, l.lag, "nobody knows it")
	})
}

// A service starts without its replica, and finds it later.
func TestStartWithoutTheReplica(t *testing.T) {
	dsn := pgtest.DSN(t)
	db := open(t, postgres.Config{DSN: dsn, ReadDSN: with(t, dsn, func(u *url.URL) { u.Host = "127.0.0.1:1" })})
	becomes(t, db, func(s postgres.ReplicaState) bool { return s.Reason == "unreachable" })
	r, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	require.False(t, place(t.Context(), t, r, tx.Options{Replica: true}))
	_, ok := open(t, postgres.Config{DSN: dsn}).Replica()
	require.False(t, ok, "none is configured")
	_, err = db.Begin(t.Context(), tx.BeginOptions{Options: tx.Options{Replica: true}})
	require.ErrorContains(t, err, "a replica takes no writes")
}

func TestFailOver(t *testing.T) {
	primary, standby := pair(t)
	hosts := with(t, primary.DSN(), func(u *url.URL) {
		second, err := url.Parse(standby.DSN())
		require.NoError(t, err)
		u.Host += "," + second.Host
	})
	db := open(t, postgres.Config{DSN: hosts, MaxConns: 1})
	exec(t, db, "insert into public.note values (10)")

	// A switch-over fences the old primary first. Sessions live on, and learn of it by 25006.
	fence := pgtest.Connect(t, primary.DSN())
	_, err := fence.Exec(t.Context(), "alter system set default_transaction_read_only = on")
	require.NoError(t, err)
	_, err = fence.Exec(t.Context(), "select pg_reload_conf()")
	require.NoError(t, err)
	write := func() error {
		_, err := db.Exec(t.Context(), "insert into public.note values (11)")
		return err
	}
	var refused error
	require.Eventually(t, func() bool { // until the session has read its new settings, rows get in, and meet the one before
		refused = write()
		return refused != nil && !errors.Is(refused, fault.DBUniqueViolation)
	}, 30*time.Second, time.Millisecond)
	require.ErrorIs(t, refused, fault.DBReadOnly)
	require.Equal(t, "25006", sqlstate(refused))
	err = db.Ping(t.Context())
	require.ErrorIs(t, err, fault.DBUnavailable, "neither server takes writes, so no connection is good enough")
	require.True(t, fault.Retryable(err))

	_, err = pgtest.Connect(t, standby.DSN()).Exec(t.Context(), "select pg_promote()")
	require.NoError(t, err)
	_, err = db.Exec(t.Context(), "delete from public.note where n = 11")
	require.NoError(t, err, "the pool finds the new primary by itself")
	require.NoError(t, write())
	require.EqualValues(t, standby.Port(), get[int64](t, db, "select inet_server_port()::int8"))
	require.EqualValues(t, 3, get[int64](t, db, "select count(*) from public.note"), "what was acknowledged is there")
}
