package postgres_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"caskeleton.dev/adapter/postgres"
	"caskeleton.dev/adapter/postgres/migrations/migrationstest"
	"caskeleton.dev/fault"
	"caskeleton.dev/internal/proxytest"
	"caskeleton.dev/tx"
)

// A look whose wait for the transaction ends by lock_timeout has told nothing: the transaction may yet commit, as this one does.
func TestACommitThatStillRunsIsWaitedFor(t *testing.T) {
	db := shop(t, postgres.Config{DSN: migrationstest.DSN(t), LockTimeout: 50 * time.Millisecond})
	// A COMMIT that takes its time and cannot be canceled, as one that waits for a synchronous standby.
	exec(t, db, `create function shop.stubborn() returns trigger language plpgsql as $$ begin
		perform pg_sleep(60); return null;
	exception when query_canceled then
		perform pg_sleep(0.5); return null;
	end $$`)
	exec(t, db, `create constraint trigger late after insert on shop.parents deferrable initially deferred for each row execute function shop.stubborn()`)
	runner, err := tx.NewRunner(db, &tx.RunnerOptions{CommitTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)}) // the trigger sleeps by then
	require.NoError(t, err)
	hooks := 0
	v, err := tx.Value(t.Context(), runner.With(tx.Options{Witness: true}).InWrite, func(_ context.Context, w *tx.Tx) (int, error) {
		q, err := postgres.Querier(w)
		require.NoError(t, err)
		exec(t, q, "insert into shop.parents (id) values (99)")
		return 7, w.AfterCommit(func(context.Context) error { hooks++; return nil })
	})
	require.NoError(t, err)
	require.Equal(t, 7, v)
	require.Equal(t, 1, hooks)
	require.EqualValues(t, 1, get[int64](t, db, "select count(*) from shop.parents where id = 99"))
}

// loseCommit ends the session of a transaction before its COMMIT, whose outcome the client cannot know.
func loseCommit(t *testing.T, db *postgres.DB, o tx.Options, w postgres.Witness) error {
	t.Helper()
	runner, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return runner.With(o).InWrite(t.Context(), func(_ context.Context, own *tx.Tx) error {
		q, err := postgres.Querier(own)
		require.NoError(t, err)
		if w != nil {
			require.NoError(t, postgres.AddWitness(own, w))
		}
		pid := backend(t, q)
		exec(t, db, "select pg_terminate_backend($1)", pid)
		waitGone(t, db, pid)
		return nil
	})
}

func TestWhoAsksIsBoundedAndSeesTheLatest(t *testing.T) {
	for _, mode := range execModes {
		db := open(t, postgres.Config{DSN: migrationstest.DSN(t), ExecMode: mode, LockTimeout: 700 * time.Millisecond})
		var lock, isolation, path string
		require.ErrorIs(t, loseCommit(t, db, tx.Options{Isolation: tx.RepeatableRead, LockTimeout: time.Second}, func(ctx context.Context, q postgres.DBTX) (tx.Outcome, error) {
			return tx.NotCommitted, q.QueryRow(ctx, "select current_setting('lock_timeout'), current_setting('transaction_isolation'), current_setting('search_path')").Scan(&lock, &isolation, &path)
		}), fault.DBUnavailable)
		require.Equal(t, []string{"700ms", "read committed", ""}, []string{lock, isolation, path})
	}
}

// What the key was asked by is rolled back, or a second look would take it for the transaction's own.
func TestALookLeavesNothing(t *testing.T) {
	db := open(t, postgres.Config{DSN: migrationstest.DSN(t)})
	require.ErrorIs(t, loseCommit(t, db, tx.Options{Witness: true}, nil), fault.DBUnavailable)
	require.Zero(t, get[int64](t, db, "select count(*) from caskeleton.commit_witness"))
}

// An outcome beside an error is none.
func TestAWitnessThatFailsTellsNothing(t *testing.T) {
	db := open(t, postgres.Config{DSN: migrationstest.DSN(t)})
	looks := 0
	require.ErrorIs(t, loseCommit(t, db, tx.Options{}, func(ctx context.Context, q postgres.DBTX) (tx.Outcome, error) {
		if looks++; looks == 1 {
			_, err := q.Exec(ctx, "select no_such_column")
			return tx.Committed, err
		}
		return tx.NotCommitted, nil
	}), fault.DBUnavailable)
	require.Equal(t, 2, looks)
}

// A look whose connection has gone silent ends long before the budget does, and leaves time for another.
func TestALookThatGetsNoAnswerIsGivenUp(t *testing.T) {
	p := proxytest.New(t, migrationstest.DSN(t))
	db := open(t, postgres.Config{DSN: p.DSN(), LockTimeout: 100 * time.Millisecond, IdleTxTimeout: time.Minute})
	db.SetSilence(200 * time.Millisecond)
	runner, err := tx.NewRunner(db, &tx.RunnerOptions{ResolveTimeout: 15 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	var mute *proxytest.Fault
	require.ErrorIs(t, runner.With(tx.Options{Witness: true}).InWrite(t.Context(), func(_ context.Context, own *tx.Tx) error {
		q, err := postgres.Querier(own)
		require.NoError(t, err)
		pid := backend(t, q)
		exec(t, db, "select pg_terminate_backend($1)", pid)
		waitGone(t, db, pid)
		mute = p.Break(proxytest.Mute, "insert into caskeleton.commit_witness")
		return nil
	}), fault.DBUnavailable)
	select {
	case <-mute.Struck():
	default:
		require.Fail(t, "no look went silent")
	}
}

// A server that has crashed has left many questions open, and has few connections for them at first.
func TestFewLookAtOnce(t *testing.T) {
	const lost, limit = 12, 4
	db := open(t, postgres.Config{DSN: migrationstest.DSN(t), MaxConns: lost + 1})
	runner, err := tx.NewRunner(db, &tx.RunnerOptions{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	var looking, most atomic.Int64
	goOn, pids, gone := make(chan struct{}), make(chan int64, lost), make(chan struct{})
	witness := func(context.Context, postgres.DBTX) (tx.Outcome, error) {
		n := looking.Add(1)
		defer looking.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); {
			old = most.Load()
		}
		<-goOn
		return tx.NotCommitted, nil
	}
	var ends sync.WaitGroup
	errs := make([]error, lost)
	for i := range errs {
		ends.Go(func() {
			errs[i] = runner.InWrite(t.Context(), func(ctx context.Context, own *tx.Tx) error {
				q, err := postgres.Querier(own)
				if err != nil {
					return err
				}
				var pid int64
				err = errors.Join(postgres.AddWitness(own, witness), q.QueryRow(ctx, "select pg_backend_pid()::int8").Scan(&pid))
				pids <- pid
				<-gone
				return err
			})
		})
	}
	for range lost {
		pid := <-pids
		exec(t, db, "select pg_terminate_backend($1)", pid)
		waitGone(t, db, pid)
	}
	close(gone)
	require.Eventually(t, func() bool { return looking.Load() >= limit }, 30*time.Second, time.Millisecond)
	close(goOn)
	ends.Wait()
	for _, err := range errs {
		require.ErrorIs(t, err, fault.DBUnavailable)
	}
	require.EqualValues(t, limit, most.Load())
}
