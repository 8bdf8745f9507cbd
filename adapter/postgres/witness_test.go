package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/adapter/postgres/pgtest"
	"caskeleton.dev/fault"
	"caskeleton.dev/tx"
)

var witnessed = tx.BeginOptions{Options: tx.Options{Witness: true}}

func TestTheWitnessRidesWithBegin(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := open(t, postgres.Config{DSN: migrationstest.DSN(t), ExecMode: mode})
			rows := func() int64 { return get[int64](t, db, "select count(*) from caskeleton.commit_witness") }
			c := begin(t, db, witnessed)
			last := get[string](t, db, "select query from pg_stat_activity where datname = current_database() and state = 'idle in transaction'")
			require.Regexp(t, `^begin isolation level read committed; insert into caskeleton.commit_witness \(id\) values \('[0-9a-f]{32}'\)$`, last, "one message")
			require.True(t, postgres.Witnessed(c.Conn))
			require.NoError(t, c.Commit(t.Context()))
			require.EqualValues(t, 1, rows())

			c = begin(t, db, witnessed)
			require.NoError(t, c.Rollback(t.Context()))
			for _, without := range []tx.BeginOptions{{}, {ReadOnly: true, Options: witnessed.Options}} {
				c = begin(t, db, without)
				require.False(t, postgres.Witnessed(c.Conn))
				require.NoError(t, c.Commit(t.Context()))
			}
			require.EqualValues(t, 1, rows())
		})
	}
}

func TestAWitnessNeedsItsTable(t *testing.T) {
	db := open(t, postgres.Config{DSN: pgtest.DSN(t)})
	_, err := db.Begin(t.Context(), witnessed)
	require.ErrorContains(t, err, "run the migrations")
	require.Equal(t, "42P01", sqlstate(err))
	require.Eventually(t, func() bool { return db.Stat().AcquiredConns() == 0 }, 10*time.Second, time.Millisecond)
}

// A row that was rolled back says "not committed" of a transaction that may have.
func TestAWitnessEndsWithItsRow(t *testing.T) {
	const undo = "savepoint s; rollback to savepoint s"
	sql := func(sql string, args ...any) func(*testing.T, transaction) {
		return func(t *testing.T, c transaction) {
			t.Helper()
			exec(t, c, sql, args...)
		}
	}
	for name, k := range map[string]struct {
		do   func(t *testing.T, c transaction)
		kept bool
	}{
		"nothing": {func(*testing.T, transaction) {}, true},
		"a savepoint of ours, kept": {func(t *testing.T, c transaction) {
			t.Helper()
			require.NoError(t, errors.Join(c.Savepoint(t.Context(), "s", false), c.Release(t.Context(), "s")))
		}, true},
		"a savepoint of ours, later": {func(t *testing.T, c transaction) {
			t.Helper()
			require.NoError(t, errors.Join(c.Savepoint(t.Context(), "s", false), c.RollbackTo(t.Context(), "s")))
		}, true},
		"a savepoint of fn's, kept":       {sql("savepoint s; release savepoint s"), true},
		"a savepoint of fn's, undone":     {sql(undo), false},
		"hidden between other statements": {sql(undo + "; select 1"), false},
		"by a query": {func(t *testing.T, c transaction) {
			t.Helper()
			sql("savepoint s")(t, c)
			rows, err := c.Query(t.Context(), "rollback to s")
			rows.Close()
			require.NoError(t, err)
		}, false},
		"by a batch": {func(t *testing.T, c transaction) {
			t.Helper()
			b := &pgx.Batch{}
			b.Queue("savepoint s")
			b.Queue("ROLLBACK TO s")
			require.NoError(t, c.DBTX.(postgres.Batcher).SendBatch(t.Context(), b).Close())
		}, false},
		"by an Exec with a mode":       {sql(undo, pgx.QueryExecModeSimpleProtocol), false},
		"by an Exec with no named arg": {sql(undo, pgx.NamedArgs{}), false},
		"hidden behind a mode":         {sql("savepoint s; rollback to savepoint s; select $1::int8", pgx.QueryExecModeSimpleProtocol, 1), false},
		"by a query with a mode": {func(t *testing.T, c transaction) {
			t.Helper()
			sql("savepoint s")(t, c)
			require.NoError(t, c.QueryRow(t.Context(), "select 1; rollback to s", pgx.QueryExecModeSimpleProtocol).Scan(new(int)))
		}, false},
		"by a batch with no named arg": {func(t *testing.T, c transaction) {
			t.Helper()
			b := &pgx.Batch{}
			b.Queue("savepoint s")
			b.Queue("rollback to s", pgx.NamedArgs{})
			require.NoError(t, c.DBTX.(postgres.Batcher).SendBatch(t.Context(), b).Close())
		}, false},
		"a query of a column that is called so": {func(t *testing.T, c transaction) {
			t.Helper()
			require.NoError(t, c.QueryRow(t.Context(), "select 1 as supply_chain, 2 as rollbacks").Scan(new(int), new(int)))
		}, true},
		"a statement that only looks so":   {func(t *testing.T, c transaction) { t.Helper(); exec(t, c, "select $1::text", "rollback") }, true},
		"the word in a single Exec's text": {sql("select 'rollback'"), true},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, postgres.Config{DSN: migrationstest.DSN(t)})
			c := begin(t, db, witnessed)
			k.do(t, c)
			require.Equal(t, k.kept, postgres.Witnessed(c.Conn))
			require.NoError(t, c.Rollback(t.Context()))
		})
	}
}

func TestAWitnessOfASavepoint(t *testing.T) {
	db := open(t, postgres.Config{DSN: pgtest.DSN(t)})
	runner, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	stop := errors.New("stop")
	add := func(w *tx.Tx) error {
		return postgres.AddWitness(w, func(context.Context, postgres.DBTX) (tx.Outcome, error) { return tx.Unknown, nil })
	}
	require.NoError(t, runner.InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) error {
		c, err := tx.Unwrap(w)
		require.NoError(t, err)
		scope := func(result error, more func(context.Context) error) func(context.Context) error {
			return func(ctx context.Context) error {
				return errors.Join(add(w), more(ctx), result)
			}
		}
		nothing := func(context.Context) error { return nil }
		require.ErrorIs(t, w.Savepoint(ctx, scope(stop, nothing)), stop)
		require.False(t, postgres.Witnessed(c), "it was undone")
		require.ErrorIs(t, w.Savepoint(ctx, func(ctx context.Context) error {
			require.NoError(t, w.Savepoint(ctx, scope(nil, nothing)))
			require.True(t, postgres.Witnessed(c), "it was kept")
			return stop
		}), stop)
		require.False(t, postgres.Witnessed(c), "it was undone with the scope around it")
		require.NoError(t, w.Savepoint(ctx, scope(nil, func(ctx context.Context) error {
			require.ErrorIs(t, w.Savepoint(ctx, scope(stop, nothing)), stop)
			require.True(t, postgres.Witnessed(c), "that of the outer scope")
			return nil
		})))
		require.True(t, postgres.Witnessed(c))
		return nil
	}))
	require.ErrorIs(t, runner.InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
		require.NoError(t, runner.InNew(t.Context(), func(_ context.Context, inner *tx.Tx) error { w = inner; return nil }))
		return add(w)
	}), tx.ErrDone)
}

// The row of a scope that was kept belongs to the scope around it, whatever becomes of the next one inside.
func TestAWitnessIsNotUndoneWithASibling(t *testing.T) {
	db := open(t, postgres.Config{DSN: pgtest.DSN(t)})
	runner, err := tx.NewRunner(db, nil)
	require.NoError(t, err)
	stop := errors.New("stop")
	require.NoError(t, runner.InWrite(t.Context(), func(ctx context.Context, w *tx.Tx) error {
		c, err := tx.Unwrap(w)
		require.NoError(t, err)
		require.NoError(t, w.Savepoint(ctx, func(ctx context.Context) error {
			require.NoError(t, w.Savepoint(ctx, func(context.Context) error {
				return postgres.AddWitness(w, func(context.Context, postgres.DBTX) (tx.Outcome, error) { return tx.Unknown, nil })
			}))
			require.ErrorIs(t, w.Savepoint(ctx, func(context.Context) error { return stop }), stop)
			require.True(t, postgres.Witnessed(c))
			return nil
		}))
		require.True(t, postgres.Witnessed(c))
		return nil
	}))
}

func TestWitnessesAreReapedAfterAnHour(t *testing.T) {
	for _, mode := range execModes {
		t.Run(mode, func(t *testing.T) {
			db := open(t, postgres.Config{DSN: migrationstest.DSN(t), ExecMode: mode})
			exec(t, db, `insert into caskeleton.commit_witness (id, written_at)
				select gen_random_uuid(), clock_timestamp() - n * interval '1 second' from generate_series(3601, 9000) n`)
			exec(t, db, `insert into caskeleton.commit_witness (id, written_at) values (gen_random_uuid(), clock_timestamp() - interval '59 minutes')`)
			n, err := db.ReapWitnesses(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 5400, n)
			require.EqualValues(t, 1, get[int64](t, db, "select count(*) from caskeleton.commit_witness"))
			n, err = db.ReapWitnesses(t.Context())
			require.NoError(t, err)
			require.Zero(t, n)
		})
	}
}

// In this mode arguments do not keep a text from holding several statements.
func TestAWitnessEndsWithItsRowInTheSimpleProtocol(t *testing.T) {
	db := open(t, postgres.Config{DSN: migrationstest.DSN(t), ExecMode: "simple_protocol"})
	c := begin(t, db, witnessed)
	exec(t, c, "select $1::int8; select $1::text as supply_chain", 1)
	require.True(t, postgres.Witnessed(c.Conn))
	exec(t, c, "savepoint s; rollback to savepoint s; select $1::int8", 1)
	require.False(t, postgres.Witnessed(c.Conn))
	require.NoError(t, c.Rollback(t.Context()))
}

// A transaction may be open for longer than its row is kept: then its absence says nothing.
func TestAnOldTransactionIsOnlyEverToldCommitted(t *testing.T) {
	db := open(t, postgres.Config{DSN: migrationstest.DSN(t)})
	for age, want := range map[time.Duration]tx.Outcome{0: tx.NotCommitted, 29 * time.Minute: tx.NotCommitted, 31 * time.Minute: tx.Unknown} {
		id, w := postgres.NewWitness(time.Now().Add(-age))
		got, err := w(t.Context(), db) // which inserts it
		require.NoError(t, err)
		require.Equal(t, want, got, age)
		got, err = w(t.Context(), db)
		require.NoError(t, err)
		require.Equal(t, tx.Committed, got, id)
	}
}

// What nobody can look at for as long as the bound lasts stays unknown; what comes back in time is told.
func TestAServerThatStaysAway(t *testing.T) {
	l := newCutlab(t)
	for want, restart := range map[error]bool{fault.DBCommitUnknown: false, fault.DBUnavailable: true} {
		s := l.sides[0]
		runner, err := tx.NewRunner(s.db, &tx.RunnerOptions{ResolveTimeout: 300 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		if restart {
			runner = s.runner
		}
		works(t, s.db)
		err = runner.With(tx.Options{Witness: true}).InWrite(t.Context(), func(context.Context, *tx.Tx) error {
			require.NoError(t, l.server.StopImmediate(t.Context()))
			if restart {
				return l.start(t)
			}
			return nil
		})
		require.ErrorIs(t, err, want)
		if !restart {
			require.NoError(t, l.start(t))
		}
	}
}

// The server keeps a session whose client has vanished until its own timeout, and the key with it.
func TestAClientThatVanishedIsWaitedFor(t *testing.T) {
	w, dsn := newWire(t, migrationstest.DSN(t))
	db := open(t, postgres.Config{DSN: dsn, IdleTxTimeout: 700 * time.Millisecond, LockTimeout: 200 * time.Millisecond})
	runner, err := tx.NewRunner(db, &tx.RunnerOptions{CommitTimeout: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	err = runner.With(tx.Options{Witness: true}).InWrite(t.Context(), func(context.Context, *tx.Tx) error {
		w.cut()
		return nil
	})
	require.ErrorIs(t, err, fault.DBUnavailable)
	require.NotErrorIs(t, err, fault.DBCommitUnknown)
}

// The FATAL of a session that an administrator ended is read only after COMMIT was written.
func TestASessionThatWasTerminated(t *testing.T) {
	db := open(t, postgres.Config{DSN: migrationstest.DSN(t)})
	runner, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for witness, want := range map[bool]error{true: fault.DBUnavailable, false: fault.DBCommitUnknown} {
		require.ErrorIs(t, runner.With(tx.Options{Witness: witness}).InWrite(t.Context(), func(_ context.Context, w *tx.Tx) error {
			q, err := postgres.Querier(w)
			require.NoError(t, err)
			pid := backend(t, q)
			exec(t, db, "select pg_terminate_backend($1)", pid)
			waitGone(t, db, pid)
			return nil
		}), want)
	}
}
